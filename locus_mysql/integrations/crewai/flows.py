"""The persistence of CrewAI's flows, `CrewFlowPersistence`: the states of a flow are the checkpoints of a thread."""

from __future__ import annotations

import json
from datetime import date
from operator import attrgetter
from typing import Any, Self, Unpack, cast

from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.persistence.base import FlowPersistence
from pydantic import BaseModel, PrivateAttr

from ...config import ENVIRONMENT, Keywords
from ...families.checkpoints.store import SyncCheckpointStore
from ...runtime.database import Where

#: The beginnings of the ids of threads: of a flow's states, and of the feedback that it waits for.
FLOW, FEEDBACK = "crewai/", "crewai-feedback/"


class CrewFlowPersistence(FlowPersistence):
    """Keeps the states of flows, and feedback that they wait for, in MySQL: a `FlowPersistence` of CrewAI.

    All states are kept, as what they changed, unless ``keep_checkpoints`` limits them. Safe to share between threads.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which those of `CheckpointStore` apply.
    """

    persistence_type: str = "CrewFlowPersistence"
    _store: SyncCheckpointStore = PrivateAttr()

    def __init__(self, where: Where = ENVIRONMENT, /, persistence_type: str = "", **options: Unpack[Keywords]) -> None:
        super().__init__()  # CrewAI gives the type when it restores a flow
        self._store = SyncCheckpointStore(where, **options)

    config, database = property(attrgetter("_store.config")), property(attrgetter("_store.database"))
    close, tenant_scope = property(attrgetter("_store.close")), property(attrgetter("_store.tenant_scope"))

    def init_db(self) -> None:
        """Do nothing: the first call creates missing tables."""

    def save_state(self, flow_uuid: str, method_name: str, state_data: dict[str, Any] | BaseModel) -> None:
        """Store the state after a method as JSON: sets as lists, what JSON does not have as text. One round trip."""
        self._store.save(FLOW + flow_uuid, _json(state_data), metadata={"method": method_name})

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        """Return the newest state of a flow; None without one. One round trip."""
        return self._store.load(FLOW + flow_uuid)

    def save_pending_feedback(
        self, flow_uuid: str, context: PendingFeedbackContext, state_data: dict[str, Any] | BaseModel
    ) -> None:
        """Store the state of a flow that waits for feedback, and what it waits for. Two round trips."""
        # Together first, so a process that is killed before the state is stored again leaves a flow that resumes.
        pending = {"context": _json(context.to_dict()), "state": _json(state_data)}
        self._store.save(FEEDBACK + flow_uuid, pending, metadata={"method": context.method_name})
        self.save_state(flow_uuid, context.method_name, state_data)

    def load_pending_feedback(self, flow_uuid: str) -> tuple[dict[str, Any], PendingFeedbackContext] | None:
        """Return the state of a waiting flow, and what it waits for; None if it does not wait. One round trip."""
        found = self._store.load(FEEDBACK + flow_uuid)
        return None if found is None else (found["state"], PendingFeedbackContext.from_dict(found["context"]))

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        """Forget that a flow waits. Its states stay. One round trip."""
        self._store.delete(FEEDBACK + flow_uuid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._store.close()


def _json(state: object) -> dict[str, Any]:
    """Return a state as it will be loaded."""
    return cast(dict[str, Any], json.loads(json.dumps(state, default=_plain)))


def _plain(value: object) -> Any:
    """Return the value to write for what JSON does not have."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", fallback=str)
    if isinstance(value, set | frozenset):
        return list(value)
    return value.isoformat() if isinstance(value, date) else str(value)
