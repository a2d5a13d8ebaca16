"""`AnyStore`: calls stores of either side in the same way."""

from __future__ import annotations

import inspect
from typing import Any


class AnyStore:
    """A store of either side with awaitable methods.

    Args:
        store: The store.
    """

    def __init__(self, store: Any) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        if not callable(method):
            return method

        async def call(*args: Any, **options: Any) -> Any:
            outcome = method(*args, **options)
            return await outcome if inspect.isawaitable(outcome) else outcome

        return call
