"""The frame of every chapter: separate tables, which are dropped at the end, and the verdict on the checks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import TextIO

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.engine.execution import AsyncEngine
from locus_mysql.engine.operation import Batch, Operation

from .database import own_tables
from .display import Screen


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter that is running.

    Args:
        screen: Where its sections are shown and checked.
        config: The server, with tables that only this chapter uses.
    """

    screen: Screen
    config: MySQLConfig

    @property
    def where(self) -> str:
        """The server and the driver, for the title."""
        return f"{', '.join(map(str, self.config.endpoints))} through {self.config.driver}"


@contextlib.asynccontextmanager
async def chapter(
    config: MySQLConfig, stream: TextIO, schemas: Callable[[MySQLConfig], Iterable[Schema]]
) -> AsyncIterator[Chapter]:
    """Run a chapter in separate tables; drop them at the end, and show whether every check held.

    Args:
        config: The server, the database, the driver.
        stream: The output.
        schemas: Returns the tables that the chapter creates.
    """
    began = time.monotonic()
    running = Chapter(Screen(stream), own_tables(config))
    try:
        yield running
    finally:
        engine = AsyncEngine(running.config)
        try:
            for schema in schemas(running.config):
                await engine.run(_drop(schema))
        finally:
            await engine.close()
    running.screen.verdict(time.monotonic() - began)


def _drop(schema: Schema) -> Operation[None]:
    yield Batch.of(schema.drop())
