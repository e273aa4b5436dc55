"""The loop that connects optimizer, evaluation and run file: generation by generation, or result by result."""

from mixcma.search.account import Account
from mixcma.search.asynchronous import AsynchronousSearch
from mixcma.search.base import Callback, Search
from mixcma.search.resuming import take_up
from mixcma.search.synchronous import SynchronousSearch

__all__ = ["Account", "AsynchronousSearch", "Callback", "Search", "SynchronousSearch", "take_up"]
