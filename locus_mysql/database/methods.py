"""Turning operations into methods: the same operation, awaited or blocking."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ..engine.operation import Operation

P = ParamSpec("P")
T = TypeVar("T")
O = TypeVar("O")  # noqa: E741 - the class that holds the operations
OCovariant = TypeVar("OCovariant", covariant=True)


class AwaitsOperations(Protocol[OCovariant]):
    """What an awaited method needs of its object."""

    @property
    def _operations(self) -> OCovariant: ...

    async def _run(self, operation: Operation[T]) -> T: ...


class BlocksForOperations(Protocol[OCovariant]):
    """What a blocking method needs of its object."""

    @property
    def _operations(self) -> OCovariant: ...

    def _run(self, operation: Operation[T]) -> T: ...


def awaited(
    operation: Callable[Concatenate[O, P], Operation[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A coroutine method that runs an operation, with its name, signature and documentation."""

    async def method(self: AwaitsOperations[O], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(operation(self._operations, *args, **kwargs))

    return _dressed(method, operation)


def blocking(operation: Callable[Concatenate[O, P], Operation[T]]) -> Callable[Concatenate[Any, P], T]:
    """A method that runs an operation and waits for it, with its name, signature and documentation."""

    def method(self: BlocksForOperations[O], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(operation(self._operations, *args, **kwargs))

    return _dressed(method, operation)


M = TypeVar("M", bound=Callable[..., Any])


def _dressed(method: M, operation: Callable[..., Operation[Any]]) -> M:
    functools.update_wrapper(method, operation)
    del method.__wrapped__  # type: ignore[attr-defined]  # or signatures would show the operation's
    signature = inspect.signature(operation)
    returned = signature.return_annotation
    if isinstance(returned, str) and returned.startswith("Operation["):
        returned = returned[len("Operation[") : -1]
    method.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
    method.__annotations__ = {**operation.__annotations__, "return": returned}
    return method
