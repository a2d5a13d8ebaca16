"""Base classes of the public stores: a database, possibly the store's own, and operations that are its methods.

Each operation is written once, as a generator, and awaited or blocking in a class:

    class CheckpointStore(AsyncStore[StoreOperations]):
        save = awaited_method(StoreOperations.save)

The method has the operation's signature and docstring. A base of an asynchronous and of a blocking class lists the
methods of both: ``save = Method(StoreOperations.save)``.

A class with such methods has two private members: ``_operations``, the object that holds the generator functions, and
``_run``, which runs a generator and returns its result. ``_run`` determines which values a generator may yield: stores
in MySQL run batches on the engine, stores of memories also embed texts, working memory sends calls to a storage.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from time import perf_counter
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    get_args,
    get_type_hints,
    overload,
    runtime_checkable,
)

from ..config import MySQLConfig
from ..dialect import Schema
from ..errors import ConfigError, LocusMySQLError, SetupError, Unavailable
from .arguments import tenant_scope
from .database import Database, description_of
from .sealing import fetching_keys, refuse_clear_tables


class HasSchema(Protocol):
    """The operations of a store."""

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""

    @property
    def schema(self) -> Schema:
        """The tables that the operations need."""


@runtime_checkable
class HasCaches(Protocol):
    """Operations with process caches."""

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""


#: The class that holds the operations.
Ops = TypeVar("Ops", bound=HasSchema)
T = TypeVar("T")
P = ParamSpec("P")


class Store(Generic[Ops]):
    """Base of `AsyncStore` and `SyncStore`: everything that does not wait.

    Args:
        operations: The operations that the store's methods run; see `methods`.
        database: The database that runs them.
        owned: Whether `close` closes the database's connections.
    """

    def __init__(self, operations: Ops, database: Database, *, owned: bool) -> None:
        refuse_clear_tables(operations.config, operations.schema)
        if isinstance(operations, HasCaches):
            operations.attach(database)
        self._operations = operations
        self._owned = owned
        self.database = database

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""
        return self._operations.config

    def tenant_scope(self, tenant: str) -> AbstractContextManager[None]:
        """Calls inside ``with store.tenant_scope("acme"):``, and in tasks started inside it, belong to this tenant.

        Raises:
            InvalidInput: The tenant is not 1 to 128 characters.
            ConfigError: All calls of this store belong to the tenant that it was made for, as with memU's records.
        """
        if getattr(self._operations, "of_one_tenant", False):
            raise ConfigError(f"{type(self).__name__} has one tenant. Make another one, with tenant={tenant!r:.200}.")
        return tenant_scope(self.config, tenant)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({description_of(self.config)}, tenant={self.config.tenant!r})"


class Method(Generic[P, T]):
    """A method of an asynchronous and of a blocking class, in a base of both: each gets its own function instead.

    Args:
        operation: The operation. It has no type variables of its own.
    """

    def __init__(self, operation: Callable[Concatenate[Any, P], Generator[Any, Any, T]]) -> None:
        self.operation = operation

    @overload
    def __get__(self, store: Awaited, owner: Any = ...) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, store: Blocking, owner: Any = ...) -> Callable[P, T]: ...
    @overload
    def __get__(self, store: None, owner: Any = ...) -> Callable[Concatenate[Any, P], Any]: ...

    def __get__(self, store: object, owner: Any = None) -> Any:
        """Return this; for type checkers, the method."""
        return self


class Awaited:
    """Base of classes whose methods are awaited."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _add_methods(cls, awaits=True)


class Blocking:
    """Base of classes whose methods block."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _add_methods(cls, awaits=False)


def _add_methods(kind: type, *, awaits: bool) -> None:
    """Give a class the functions of the methods that its bases list for both sides."""
    for name in {name for base in kind.__mro__ for name, one in vars(base).items() if isinstance(one, Method)}:
        listed = inspect.getattr_static(kind, name)
        if isinstance(listed, Method):
            setattr(kind, name, (awaited_method if awaits else blocking_method)(listed.operation))


class AsyncStore(Store[Ops], Awaited):
    """Base of stores whose methods are awaited. The arguments are those of `Store`."""

    #: The class whose methods block, if its name is not this one's with ``Sync`` before it.
    _blocking_class: ClassVar[str | None] = None

    def __init__(self, operations: Ops, database: Database, *, owned: bool) -> None:
        database.check_driver(type(self).__name__, blocks=False, other=self._counterpart())
        super().__init__(operations, database, owned=owned)

    async def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones."""
        if self._owned:
            await self.database.aclose()

    async def _run(self, operation: Generator[Any, Any, T]) -> T:
        """Run an `Operation` on the engine. Subclasses may run generators with further kinds of steps."""
        operations, engine = self._operations, self.database.asynchronous
        telemetry = self.database.telemetry
        steps = operation
        if operations.config.encryption is not None:
            steps = fetching_keys(operation, operations.config)
        if perf_counter() < telemetry.quiet_until or not telemetry.is_on:
            return await engine.run(steps, operations.schema, operations.config.ddl_mode)
        with telemetry.call(operation, engine):
            return await engine.run(steps, operations.schema, operations.config.ddl_mode)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        blocking = self._counterpart()
        advice = f", or use {blocking}" if blocking else ""
        raise ConfigError(f"{type(self).__name__} is asynchronous: write `async with`{advice}.")

    def __exit__(self, *error: object) -> None: ...

    def _counterpart(self) -> str | None:
        """Return the name of the class whose methods block; None if there is none."""
        name = self._blocking_class or f"Sync{type(self).__name__}"
        return name if self._blocking_class or hasattr(sys.modules[type(self).__module__], name) else None


class SyncStore(Store[Ops], Blocking):
    """Base of stores whose methods block. Safe to share between threads. The arguments are those of `Store`."""

    #: The class whose methods are awaited, if its name is not this one's without ``Sync``.
    _awaited_class: ClassVar[str | None] = None

    def __init__(self, operations: Ops, database: Database, *, owned: bool) -> None:
        awaited = self._awaited_class or type(self).__name__.removeprefix("Sync")
        database.check_driver(type(self).__name__, blocks=True, other=awaited)
        super().__init__(operations, database, owned=owned)

    def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones."""
        if self._owned:
            self.database.close()

    def _run(self, operation: Generator[Any, Any, T]) -> T:
        """Run an `Operation` on the engine. Subclasses may run generators with further kinds of steps."""
        operations, engine = self._operations, self.database.synchronous
        telemetry = self.database.telemetry
        steps = operation
        if operations.config.encryption is not None:
            steps = fetching_keys(operation, operations.config)
        if perf_counter() < telemetry.quiet_until or not telemetry.is_on:
            return engine.run(steps, operations.schema, operations.config.ddl_mode)
        with telemetry.call(operation, engine):
            return engine.run(steps, operations.schema, operations.config.ddl_mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


AnyOps = TypeVar("AnyOps")
OCovariant = TypeVar("OCovariant", covariant=True)


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


def awaited_method(
    operation: Callable[Concatenate[AnyOps, P], Generator[Any, Any, T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the coroutine method that runs an operation."""

    async def method(self: RunsAwaited[AnyOps], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._run(operation(self._operations, *args, **kwargs))
        except (SetupError, Unavailable) as error:
            raise without_frames(error) from error.__cause__

    return _described(method, operation)


def blocking_method(
    operation: Callable[Concatenate[AnyOps, P], Generator[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """Return the method that runs an operation and waits for its result."""

    def method(self: RunsBlocking[AnyOps], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return self._run(operation(self._operations, *args, **kwargs))
        except (SetupError, Unavailable) as error:
            raise without_frames(error) from error.__cause__

    return _described(method, operation)


def without_frames(error: LocusMySQLError) -> LocusMySQLError:
    """Return an error without the frames of this package: its message says what the user has to do."""
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
    return error


M = TypeVar("M", bound=Callable[..., Any])


def _described(method: M, operation: Callable[..., Generator[Any, Any, Any]]) -> M:
    """Return a method with the operation's name, signature and docs."""
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
    return method
