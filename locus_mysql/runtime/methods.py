"""Turns operations into methods: each operation is written once, as a generator, and awaited or blocking in a class.

    class CheckpointStore(AsyncStore[StoreOperations]):
        @awaited(StoreOperations.save)
        def save(self) -> None: ...

The method has the operation's signature and docstring. The definition below the decorator has no body; it gives the
method the name that type checkers show in errors.

A class with such methods has two private members: ``_operations``, the object that holds the generator functions, and
``_run``, which runs a generator and returns its result. ``_run`` determines which values a generator may yield: stores
in MySQL run batches on the engine, stores of memories also embed texts, working memory sends calls to a storage.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, get_args, get_type_hints

P = ParamSpec("P")
T = TypeVar("T")
#: The class that holds the operations.
Ops = TypeVar("Ops")
OCovariant = TypeVar("OCovariant", covariant=True)

#: A definition without a body.
Definition: TypeAlias = Callable[[Any], None]


class RunsAwaited(Protocol[OCovariant]):
    """A class with awaited methods."""

    @property
    def _operations(self) -> OCovariant: ...

    async def _run(self, operation: Generator[Any, Any, T]) -> T: ...


class RunsBlocking(Protocol[OCovariant]):
    """A class with blocking methods."""

    @property
    def _operations(self) -> OCovariant: ...

    def _run(self, operation: Generator[Any, Any, T]) -> T: ...


def awaited(
    operation: Callable[Concatenate[Ops, P], Generator[Any, Any, T]],
) -> Callable[[Definition], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]]:
    """Replace a definition by a coroutine method that runs the operation."""

    async def method(self: RunsAwaited[Ops], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(operation(self._operations, *args, **kwargs))

    return _replacing_definition(method, operation)


def blocking(
    operation: Callable[Concatenate[Ops, P], Generator[Any, Any, T]],
) -> Callable[[Definition], Callable[Concatenate[Any, P], T]]:
    """Replace a definition by a method that runs the operation and waits for its result."""

    def method(self: RunsBlocking[Ops], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(operation(self._operations, *args, **kwargs))

    return _replacing_definition(method, operation)


def awaited_method(
    operation: Callable[Concatenate[Ops, P], Generator[Any, Any, T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the coroutine method that `awaited` puts in place of a definition."""
    return awaited(operation)(_no_definition)


def blocking_method(
    operation: Callable[Concatenate[Ops, P], Generator[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """Return the method that `blocking` puts in place of a definition."""
    return blocking(operation)(_no_definition)


def _no_definition(_self: Any) -> None:
    """Stand for a definition without a body."""


M = TypeVar("M", bound=Callable[..., Any])


def _replacing_definition(method: M, operation: Callable[..., Generator[Any, Any, Any]]) -> Callable[[Definition], M]:
    """A decorator that ignores the definition, and returns the method with the operation's name, signature and docs."""
    functools.update_wrapper(method, operation)
    del method.__wrapped__  # type: ignore[attr-defined]  # or inspect would show the generator's signature
    # Annotations as objects: text would be resolved in this module's namespace, not the operation's.
    annotations = get_type_hints(operation, include_extras=True)
    annotations["return"] = get_args(annotations["return"])[-1]  # what the generator returns
    signature = inspect.signature(operation)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]  # read by inspect.signature
        parameters=[
            parameter.replace(annotation=annotations.get(name, parameter.annotation))
            for name, parameter in signature.parameters.items()
        ],
        return_annotation=annotations["return"],
    )
    method.__annotations__ = annotations
    return lambda _definition: method
