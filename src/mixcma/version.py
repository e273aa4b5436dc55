"""The version, where every room can import it."""

__version__ = "0.2.0"
