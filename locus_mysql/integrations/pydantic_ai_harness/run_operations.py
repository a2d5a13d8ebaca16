"""The operations on runs, as generators that do no I/O: `RunOperations`.

A run is a transcript: its record is the state, its events are the items. Its parts have the rest: `messages` and
`snapshots` (see `snapshots`), `effects` with the latest record of each tool call, and `children` with the runs that it
started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic_ai_harness.step_persistence import ContinuableSnapshot, RunRecord, StepEvent, ToolEffectRecord

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...engine.retry import Backoff
from ...errors import InvalidInput, NotFound, VersionConflict
from ...families.transcripts.operations import TranscriptOperations
from ...families.transcripts.records import Header, NewItem, Transcript, TranscriptKey, Write
from ..pydantic_ai_json import from_json, to_json
from .records import EFFECT, EVENT, RUN, item_id
from .snapshots import KIND, SnapshotOperations

#: Runs that are read at once.
AT_ONCE = 500


class RunOperations:
    """Stores the runs of one tenant.

    Args:
        config: The options.
        max_snapshots_per_run: The maximum number of snapshots to keep of a run; None: all.

    Raises:
        InvalidInput: The number of snapshots is not a positive whole number.
    """

    def __init__(self, config: MySQLConfig, max_snapshots_per_run: int | None = None) -> None:
        if max_snapshots_per_run is not None and not (
            isinstance(max_snapshots_per_run, int) and max_snapshots_per_run >= 1
        ):
            raise InvalidInput(f"max_snapshots_per_run must be an int >= 1 or None, not {max_snapshots_per_run!r}.")
        self.config = config
        self._transcripts = TranscriptOperations(config)
        self.schema = self._transcripts.schema
        self._snapshots = SnapshotOperations(config, self._transcripts, max_snapshots_per_run)

    def register_run(self, record: RunRecord) -> Operation[None]:
        """Store the record of a new run. One round trip.

        Does nothing if the run has an equal record, or one with the same ``registration_id``.

        Args:
            record: The record. Its ids have at most 800 bytes.

        Raises:
            InvalidInput: The run has another record; or something cannot be stored exactly. A `ValueError`.
        """
        header = Header(to_json(RUN, record, f"Run {record.run_id!r}"), scope=record.conversation_id)
        key = _run_key(record.run_id)
        writes: list[Write] = []
        if record.parent_run_id is not None:
            child = NewItem({"run_id": record.run_id}, item_id(record.run_id))
            writes.append(Write(_part_key(record.parent_run_id, "children"), [child], is_shared=True))
        revision, backoff = 0, Backoff(f"The record of run {record.run_id!r} changed while it was read")
        while True:
            try:
                yield from self._transcripts.write([Write(key, header=header, expected=revision), *writes])
                return
            except VersionConflict:
                found = yield from self._transcripts.get(key)
            stored = None if found is None else _record_of(found)
            if stored is not None:
                if stored == record or record.registration_id == stored.registration_id is not None:
                    return
                raise InvalidInput(f"Run {record.run_id!r} is already in the store. Give each run an id of its own.")
            revision = 0 if found is None else found.revision
            yield backoff.pause()

    def get_run(self, *, run_id: str) -> Operation[RunRecord | None]:
        """Return the record of a run; None if it was not registered. One round trip."""
        found = yield from self._transcripts.get(_run_key(run_id))
        return None if found is None else _record_of(found)

    def list_runs(
        self, *, parent_run_id: str | None = None, conversation_id: str | None = None
    ) -> Operation[list[RunRecord]]:
        """Return the records of runs in the order of ``started_at``. One round trip, two by parent.

        Args:
            parent_run_id: Only runs that this one started.
            conversation_id: Only runs of this conversation.
        """
        if parent_run_id is not None:
            found = yield from self._children(parent_run_id)
        elif conversation_id is not None:
            found = yield from self._transcripts.recent(KIND, "", scope=conversation_id, states=True)
        else:
            found = yield from self._transcripts.list_transcripts(KIND, "", states=True)
        records = [
            record
            for record in _records(sorted(found, key=lambda one: one.created_at))
            if parent_run_id in {None, record.parent_run_id} and conversation_id in {None, record.conversation_id}
        ]
        return sorted(records, key=lambda record: record.started_at)

    def append_event(self, event: StepEvent) -> Operation[None]:
        """Add an event to a run, unless the run has one with its ``idempotency_key``. One round trip.

        Raises:
            InvalidInput: Something cannot be stored exactly; nothing was stored.
        """
        key = event.idempotency_key
        item = NewItem(to_json(EVENT, event, "The event"), None if key is None else item_id(key))
        yield from self._transcripts.append(_run_key(event.run_id), [item])

    def list_events(self, *, run_id: str) -> Operation[list[StepEvent]]:
        """Return the events of a run in the order in which they were added. One round trip."""
        read = yield from self._transcripts.read(_run_key(run_id))
        return [] if read is None else [from_json(EVENT, item.content, "An event") for item in read.items]

    def save_snapshot(self, snapshot: ContinuableSnapshot) -> Operation[None]:
        """Store a snapshot; of its messages, those that no earlier one has.

        One round trip if this process saved the snapshot before, else two. Does nothing if the snapshot's
        ``idempotency_key`` was used already, or begins with a lower number than that of an earlier one.

        Args:
            snapshot: The snapshot. It may have 10,000 messages more than the one before.

        Raises:
            InvalidInput: Something cannot be stored exactly; nothing was stored.
            StateTooLarge: The messages need a larger packet than the server's ``max_allowed_packet``.
        """
        yield from self._snapshots.save(snapshot)

    def latest_snapshot(
        self, *, run_id: str, include_interrupted: bool = False
    ) -> Operation[ContinuableSnapshot | None]:
        """Return the newest snapshot of a run; None if there is none. Two round trips.

        Args:
            run_id: The run.
            include_interrupted: Whether it may be one whose tool calls were not finished.

        Raises:
            CorruptCheckpoint: A row is damaged or missing.
        """
        return (yield from self._snapshots.latest(run_id, include_interrupted=include_interrupted))

    def list_snapshots(self, *, run_id: str, include_interrupted: bool = False) -> Operation[list[ContinuableSnapshot]]:
        """Return the snapshots of a run in the order in which they were saved. Two round trips.

        Args:
            run_id: The run.
            include_interrupted: Whether those whose tool calls were not finished are returned too.
        """
        found = yield from self._snapshots.list_all(run_id)
        return [one for one in found if include_interrupted or one.state == "complete"]

    def record_tool_effect(self, record: ToolEffectRecord) -> Operation[None]:
        """Store the record of a tool call, in place of an earlier one. Usually one round trip.

        Raises:
            InvalidInput: Something cannot be stored exactly; nothing was stored.
        """
        key, effect_id = _part_key(record.run_id, "effects"), item_id(record.tool_call_id)
        content = to_json(EFFECT, record, "The tool effect")
        is_new = record.status == "started"
        backoff = Backoff(f"The effects of run {record.run_id!r} were deleted while one was stored")
        while True:
            if is_new:
                written = yield from self._transcripts.append(key, [NewItem(content, effect_id)])
                if written.added:
                    return
            try:
                yield from self._transcripts.replace(key, effect_id, content)
                return
            except NotFound:
                is_new = True
                yield backoff.pause()

    def get_tool_effect(self, *, run_id: str, tool_call_id: str) -> Operation[ToolEffectRecord | None]:
        """Return the latest record of a tool call; None if there is none. One round trip."""
        found = yield from self._transcripts.find(_part_key(run_id, "effects"), item_id(tool_call_id))
        return None if found is None else from_json(EFFECT, found.content, "A tool effect")

    def list_unresolved_tool_effects(self, *, run_id: str) -> Operation[list[ToolEffectRecord]]:
        """Return the records of a run's tool calls that neither completed nor failed. One round trip."""
        read = yield from self._transcripts.read(_part_key(run_id, "effects"))
        started = [] if read is None else [item for item in read.items if item.content["status"] == "started"]
        return [from_json(EFFECT, item.content, "A tool effect") for item in started]

    def _children(self, parent_run_id: str) -> Operation[list[Transcript]]:
        read = yield from self._transcripts.read(_part_key(parent_run_id, "children"))
        keys = [] if read is None else [_run_key(item.content["run_id"]) for item in read.items]
        found: list[Transcript] = []
        for start in range(0, len(keys), AT_ONCE):
            got = yield from self._transcripts.get_all(keys[start : start + AT_ONCE])
            found += [one for one in got if one is not None]
        return found


def _records(transcripts: Sequence[Transcript]) -> Iterator[RunRecord]:
    for one in transcripts:
        record = _record_of(one)
        if record is not None:
            yield record


def _record_of(transcript: Transcript) -> RunRecord | None:
    """Return the record of a run; None if the run has events only."""
    state = transcript.header.state
    return None if state is None else from_json(RUN, state, "The run")


def _run_key(run_id: str) -> TranscriptKey:
    return TranscriptKey(KIND, "", run_id)


def _part_key(run_id: str, part: str) -> TranscriptKey:
    return TranscriptKey(KIND, "", run_id, part)
