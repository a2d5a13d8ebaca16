"""Turning operations into methods: the same operation, awaited or blocking.

    class CheckpointStore(AsyncStore[StoreOperations]):
        @awaited(StoreOperations.save)
        def save(self) -> None: ...

Signature and documentation are the operation's; the definition gives the name that type checkers show in errors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, get_args, get_type_hints

from ..engine.operation import Operation

P = ParamSpec("P")
T = TypeVar("T")
O = TypeVar("O")  # noqa: E741 - the class that holds the operations
OCovariant = TypeVar("OCovariant", covariant=True)

#: A definition without a body: it gives a method its name.
Named: TypeAlias = Callable[[Any], None]


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
) -> Callable[[Named], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]]:
    """Make of a definition the coroutine method that runs an operation."""

    async def method(self: AwaitsOperations[O], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(operation(self._operations, *args, **kwargs))

    return in_place_of_the_definition(dressed(method, operation))


def blocking(
    operation: Callable[Concatenate[O, P], Operation[T]],
) -> Callable[[Named], Callable[Concatenate[Any, P], T]]:
    """Make of a definition the method that runs an operation and waits for it."""

    def method(self: BlocksForOperations[O], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(operation(self._operations, *args, **kwargs))

    return in_place_of_the_definition(dressed(method, operation))


M = TypeVar("M", bound=Callable[..., Any])


def in_place_of_the_definition(method: M) -> Callable[[Named], M]:
    """A decorator that puts a method in the place of a definition without a body."""
    return lambda _: method


def dressed(method: M, operation: Callable[..., Generator[Any, Any, Any]]) -> M:
    """The method with the name, signature and documentation of the operation, or procedure, that it runs."""
    functools.update_wrapper(method, operation)
    del method.__wrapped__  # type: ignore[attr-defined]  # or signatures would show the operation's
    # Annotations as objects: as text they would be looked up among this module's names, not the operation's.
    annotations = get_type_hints(operation, include_extras=True)
    annotations["return"] = get_args(annotations["return"])[-1]  # what the operation returns as a generator
    signature = inspect.signature(operation)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]  # inspect.signature asks for it
        parameters=[
            parameter.replace(annotation=annotations.get(name, parameter.annotation))
            for name, parameter in signature.parameters.items()
        ],
        return_annotation=annotations["return"],
    )
    method.__annotations__ = annotations
    return method
