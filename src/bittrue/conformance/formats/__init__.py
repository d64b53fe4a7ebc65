"""Cases as files and plain data: what a lab, a simulator or a build reads."""

from .describe import describe

__all__ = ["describe"]
