"""What the public classes share: engines that run their procedures, opening and closing."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from ..config import MySQLConfig
from ..dialect.memories.dialect import MemoryDialect
from ..engine.asynchronous import AsyncEngine
from ..engine.synchronous import SyncEngine
from ..errors import ConfigError
from .embedding import EmbedFunction, Procedure, Texts, embed_awaited, embed_blocking
from .tables import ensure_tables

P = ParamSpec("P")
T = TypeVar("T")


class HasProcedures(Protocol):
    """The procedures of a public class."""

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""

    @property
    def sql(self) -> MemoryDialect:
        """The statements."""

    @property
    def embed(self) -> EmbedFunction | None:
        """Embeds texts."""


O = TypeVar("O", bound=HasProcedures)  # noqa: E741 - what holds the procedures


class AsyncMemories(Generic[O]):
    """Base of classes whose methods are awaited.

    Args:
        procedures: What the methods run.
    """

    def __init__(self, procedures: O) -> None:
        self._procedures = procedures
        self._engine = AsyncEngine(*_engine_options(procedures))
        self._ready = False

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""
        return self._procedures.config

    async def run(self, procedure: Procedure[T]) -> T:
        """Carry out a procedure; the first one makes sure of the tables."""
        if not self._ready:
            await self._engine.run(ensure_tables(self.config, self._procedures.sql.schema))
            self._ready = True
        value: Any = None
        try:
            step = next(procedure)
            while True:
                try:
                    if isinstance(step, Texts):
                        value = await self.embed_texts(step)
                    else:
                        value = await self._engine.run(step)
                except Exception as error:
                    step = procedure.throw(error)
                else:
                    step = procedure.send(value)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            procedure.close()

    async def embed_texts(self, texts: Texts) -> Sequence[Any]:
        """Embed texts by the store's function."""
        return await embed_awaited(_embed_of(self._procedures), texts)

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return _described(self, self.config)


class SyncMemories(Generic[O]):
    """Base of classes whose methods block. Safe to share between threads.

    Args:
        procedures: What the methods run.
    """

    def __init__(self, procedures: O) -> None:
        self._procedures = procedures
        self._engine = SyncEngine(*_engine_options(procedures))
        self._ready = False

    @property
    def config(self) -> MySQLConfig:
        """The options in force."""
        return self._procedures.config

    def run(self, procedure: Procedure[T]) -> T:
        """Carry out a procedure; the first one makes sure of the tables."""
        if not self._ready:
            self._engine.run(ensure_tables(self.config, self._procedures.sql.schema))
            self._ready = True
        value: Any = None
        try:
            step = next(procedure)
            while True:
                try:
                    value = self.embed_texts(step) if isinstance(step, Texts) else self._engine.run(step)
                except Exception as error:
                    step = procedure.throw(error)
                else:
                    step = procedure.send(value)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            procedure.close()

    def embed_texts(self, texts: Texts) -> Sequence[Any]:
        """Embed texts by the store's function."""
        return embed_blocking(_embed_of(self._procedures), texts)

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return _described(self, self.config)


def awaited(
    procedure: Callable[Concatenate[O, P], Procedure[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A coroutine method that runs a procedure, with its name, signature and documentation."""

    async def method(self: AsyncMemories[O], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(procedure(self._procedures, *args, **kwargs))

    return _dressed(method, procedure)


def blocking(procedure: Callable[Concatenate[O, P], Procedure[T]]) -> Callable[Concatenate[Any, P], T]:
    """A method that runs a procedure and waits for it, with its name, signature and documentation."""

    def method(self: SyncMemories[O], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(procedure(self._procedures, *args, **kwargs))

    return _dressed(method, procedure)


def configured(config: MySQLConfig | None, options: dict[str, Any]) -> MySQLConfig:
    """The configuration given, or one of the options given."""
    if config is None:
        return MySQLConfig(**options)
    if options:
        raise ConfigError("Give either a MySQLConfig or options, not both.")
    return config


M = TypeVar("M", bound=Callable[..., Any])


def _dressed(method: M, procedure: Callable[..., Procedure[Any]]) -> M:
    functools.update_wrapper(method, procedure)
    del method.__wrapped__  # type: ignore[attr-defined]  # or signatures would show the procedure's
    signature = inspect.signature(procedure)
    returned = signature.return_annotation
    if isinstance(returned, str) and returned.startswith("Procedure["):
        returned = returned[len("Procedure[") : -1]
    method.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
    method.__annotations__ = {**procedure.__annotations__, "return": returned}
    return method


def _embed_of(procedures: HasProcedures) -> EmbedFunction:
    assert procedures.embed is not None  # noqa: S101 - a procedure asks for embeddings only where there is a function
    return procedures.embed


def _engine_options(procedures: HasProcedures) -> tuple[MySQLConfig, Any]:
    """What an engine is made with: it is not to look for the tables of checkpoints."""
    return procedures.config.model_copy(update={"ddl_mode": "off"}), None


def _described(store: object, config: MySQLConfig) -> str:
    """What is being talked to, without anything secret."""
    where = ", ".join(str(endpoint) for endpoint in config.endpoints)
    return f"{type(store).__name__}({where}/{config.database}, driver={config.driver!r}, tenant={config.tenant!r})"
