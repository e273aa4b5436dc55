"""The version, where every room can import it."""

__version__ = "0.1.0"
