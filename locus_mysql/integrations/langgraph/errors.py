"""Errors that are also of the Python type that LangGraph's own savers and stores raise."""

from __future__ import annotations

import asyncio

from ...errors import ConfigError, InvalidInput, UsageError


class LoopUnavailable(UsageError, asyncio.InvalidStateError):
    """A synchronous method of the asynchronous saver was called in its event loop, or while no loop was running."""


class StoreLoopUnavailable(ConfigError, asyncio.InvalidStateError):
    """A synchronous method of the asynchronous store was called in its event loop, or while no loop was running."""


class WrongType(InvalidInput, TypeError):
    """An argument has a type that the method does not accept."""
