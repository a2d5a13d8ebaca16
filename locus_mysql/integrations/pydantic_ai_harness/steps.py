"""The step store of Pydantic AI Harness: `PydanticStepStore`."""

from __future__ import annotations

from typing import Unpack

from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...runtime.database import Database, share
from ...runtime.methods import awaited
from ...runtime.stores import AsyncStore
from .run_operations import RunOperations


class PydanticStepStore(AsyncStore[RunOperations]):
    """Keeps runs of Pydantic AI Harness in MySQL: a `StepStore` of `pydantic_ai_harness.step_persistence`.

    Events and snapshots are stored once, also if a save is repeated; each message of a run is stored once, however many
    snapshots have it.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        max_snapshots_per_run: The maximum number of snapshots to keep of a run, besides the newest complete one; None:
            all.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to runs.

    Example:
        ```python
        async with PydanticStepStore("mysql://user:password@localhost/app") as store:
            agent = Agent(TestModel(), capabilities=[StepPersistence(store=store)])
            await agent.run("Hello", conversation_id="support-7")
            *_, run = await store.list_runs(conversation_id="support-7")
            snapshot = await store.latest_snapshot(run_id=run.run_id)
            await agent.run("And now?", message_history=snapshot.messages, conversation_id="support-7")
        ```
    """

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        max_snapshots_per_run: int | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(RunOperations(config, max_snapshots_per_run), database, owned=owned)

    @awaited(RunOperations.register_run)
    def register_run(self) -> None: ...
    @awaited(RunOperations.get_run)
    def get_run(self) -> None: ...
    @awaited(RunOperations.list_runs)
    def list_runs(self) -> None: ...
    @awaited(RunOperations.append_event)
    def append_event(self) -> None: ...
    @awaited(RunOperations.list_events)
    def list_events(self) -> None: ...
    @awaited(RunOperations.save_snapshot)
    def save_snapshot(self) -> None: ...
    @awaited(RunOperations.latest_snapshot)
    def latest_snapshot(self) -> None: ...
    @awaited(RunOperations.list_snapshots)
    def list_snapshots(self) -> None: ...
    @awaited(RunOperations.record_tool_effect)
    def record_tool_effect(self) -> None: ...
    @awaited(RunOperations.get_tool_effect)
    def get_tool_effect(self) -> None: ...
    @awaited(RunOperations.list_unresolved_tool_effects)
    def list_unresolved_tool_effects(self) -> None: ...
