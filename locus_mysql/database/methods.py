"""Turning operations into methods: the same operation, awaited or blocking."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, get_args, get_type_hints

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

    return dressed(method, operation)


def blocking(operation: Callable[Concatenate[O, P], Operation[T]]) -> Callable[Concatenate[Any, P], T]:
    """A method that runs an operation and waits for it, with its name, signature and documentation."""

    def method(self: BlocksForOperations[O], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(operation(self._operations, *args, **kwargs))

    return dressed(method, operation)


M = TypeVar("M", bound=Callable[..., Any])


def dressed(method: M, operation: Callable[..., Generator[Any, Any, Any]]) -> M:
    """The method with the name, signature and documentation of the operation, or procedure, that it runs."""
    functools.update_wrapper(method, operation)
    del method.__wrapped__  # type: ignore[attr-defined]  # or signatures would show the operation's
    # Annotations as objects: as text they would be looked up among this module's names, not the operation's.
    annotations = get_type_hints(operation, include_extras=True)
    annotations["return"] = get_args(annotations["return"])[-1]  # what the operation returns as a generator
    signature = inspect.signature(operation)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(annotation=annotations.get(name, parameter.annotation))
            for name, parameter in signature.parameters.items()
        ],
        return_annotation=annotations["return"],
    )
    method.__annotations__ = annotations
    return method
