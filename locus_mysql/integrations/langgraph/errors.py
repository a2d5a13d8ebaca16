"""Errors that LangGraph's own savers raise under names of Python's."""

from __future__ import annotations

import asyncio

from ...errors import ConfigError, InvalidInput, UsageError


class LoopUnavailable(UsageError, asyncio.InvalidStateError):
    """A synchronous method of the asynchronous saver was called in its event loop, or without one that runs."""


class StoreLoopUnavailable(ConfigError, asyncio.InvalidStateError):
    """The same of the asynchronous store."""


class WrongType(InvalidInput, TypeError):
    """An argument of a type that the method does not take."""
