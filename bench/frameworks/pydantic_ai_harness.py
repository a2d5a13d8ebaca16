"""Pydantic AI Harness: its step store in a SQLite file, which saves a snapshot of the whole history at each step."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pydantic_ai import ModelMessage
from pydantic_ai_harness.step_persistence import ContinuableSnapshot, SqliteStepStore, StepStore

from locus_mysql import MySQLConfig
from locus_mysql.integrations.pydantic_ai_harness import PydanticStepStore

from .contestants import CONVERSATION, Contestant, Entrant, Framework, Turn
from .pydantic_ai import MESSAGES_PER_TURN, WHEN, messages


class Steps(Contestant):
    """A `StepStore` with one run."""

    def __init__(self, config: MySQLConfig, store: StepStore) -> None:
        super().__init__(config)
        self._store = store
        self._history: list[ModelMessage] = []

    async def append(self, turn: Turn) -> None:
        """See `Contestant.append`."""
        self._history += messages(turn)
        snapshot = ContinuableSnapshot(
            run_id=CONVERSATION,
            step_index=turn.number,
            messages=self._history,
            timestamp=WHEN,
            idempotency_key=f"{turn.number}:{turn.number}:complete",
        )
        await self._store.save_snapshot(snapshot)

    async def load(self) -> int:
        """See `Contestant.load`."""
        snapshot = await self._store.latest_snapshot(run_id=CONVERSATION)
        return 0 if snapshot is None else len(snapshot.messages) // MESSAGES_PER_TURN

    async def close(self) -> None:
        """See `Contestant.close`."""
        if isinstance(self._store, PydanticStepStore):
            await self._store.close()


class InSQLite(Steps):
    """The framework's own store, which stores each message once, and a reference to each message for each snapshot."""

    def __init__(self, config: MySQLConfig) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / "runs.db"
        super().__init__(config, SqliteStepStore(database=self._file))

    async def close(self) -> None:
        """See `Contestant.close`."""
        self._folder.cleanup()

    def stored_bytes(self) -> int:
        """See `Contestant.stored_bytes`: the file with its log."""
        return sum(file.stat().st_size for file in self._file.parent.iterdir())


def ours(config: MySQLConfig) -> Steps:
    """Return this package's store."""
    return Steps(config, PydanticStepStore(config))


FRAMEWORK = Framework(
    title="Pydantic AI Harness 0.62.0",
    entrants=(
        Entrant("locus-mysql, aiomysql", ours),
        Entrant("locus-mysql, mysql-connector", ours, "mysql-connector"),
        Entrant("SqliteStepStore in a file", InSQLite),
    ),
    remark="An append is a snapshot of the whole history. SqliteStepStore stores a reference to each message for each.",
)
