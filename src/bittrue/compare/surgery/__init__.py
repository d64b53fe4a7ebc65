"""Model files cut to a part of their graph, and made smaller: one file per format."""

from .dimensions import Dimension
from .document import Document, open_document

__all__ = ["Dimension", "Document", "open_document"]
