"""Decorators that derive async methods from sync ones, and the reverse.

A derived method calls its counterpart by name, so it runs the method of a subclass that overrides that one. Example::

    @in_a_thread(put)
    def aput(self) -> None: ...
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ...runtime.stores import Definition

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Any])


class HasLoop(Protocol):
    """A saver that runs calls of other threads in its event loop."""

    def _wait_for(self, call: Coroutine[Any, Any, T]) -> T: ...


def in_a_thread(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[[Definition], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]]:
    """Replace a definition ``aname`` by the coroutine method that runs ``name`` in a thread."""

    def decorate(definition: Definition) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
        name = definition.__name__.removeprefix("a")

        async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await asyncio.to_thread(getattr(self, name), *args, **kwargs)

        return _described(awaited, definition, method, f"`{name}` in a thread.")

    return decorate


def from_other_threads(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[[Definition], Callable[Concatenate[Any, P], T]]:
    """Replace a definition ``name`` by the method that runs ``aname`` in the saver's event loop and waits for it."""

    def decorate(definition: Definition) -> Callable[Concatenate[Any, P], T]:
        name = f"a{definition.__name__}"

        def blocking(self: HasLoop, /, *args: P.args, **kwargs: P.kwargs) -> T:
            call: Coroutine[Any, Any, T] = getattr(self, name)(*args, **kwargs)
            return self._wait_for(call)

        return _described(blocking, definition, method, f"`{name}`, called from another thread than the event loop's.")

    return decorate


def _described(made: M, definition: Definition, method: Callable[..., Any], doc: str) -> M:
    """Give a method the name of its definition and the signature of its counterpart."""
    made.__name__, made.__qualname__, made.__doc__ = definition.__name__, definition.__qualname__, doc
    made.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]  # inspect.signature reads it
    return made
