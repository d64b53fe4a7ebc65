"""Model files cut to a part of their graph, and made smaller: one file per format."""

from .document import Document, open_document
from .dimensions import Dimension

__all__ = ["Dimension", "Document", "open_document"]
