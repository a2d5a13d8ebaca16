"""Between LangGraph's checkpoints and stored ones. No I/O.

Values go through the saver's serialiser, each by itself: an encrypting one encrypts them all. What is left of a
checkpoint, ids and versions, is JSON, and so is metadata, as queries need it. Where one of these holds what JSON cannot
hold exactly, both go through the serialiser.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import TASKS, _DeltaSnapshot

from ...errors import CorruptCheckpoint, InvalidInput, LocusMySQLError
from ...families.graphs.records import Base, LoadedVersion, LoadedWrite, NewValue, NewVersion
from ...families.graphs.values import Encoded, Grown
from ...runtime.exact_json import check_json_object, decode_json, encode_json, queryable_json
from ...runtime.matching import contains
from .messages import load

#: Who encoded a checkpoint.
SURFACE = "graph"

#: From this version of the format on, a checkpoint's sends are among its own values; before, among its parent's writes.
_SENDS_INSIDE = 4

#: Characters of a filter on metadata, as JSON.
FILTER_LIMIT = 65_536

#: Where LangGraph counts the steps since a channel that is stored as its writes was last stored whole.
_COUNTERS = "counters_since_delta_snapshot"

#: How a head is encoded that holds the metadata as well: by the serialiser, whose kind follows, or by JSON.
_TYPED, _BOTH = "typed:", "both"


def new_version(
    serde: SerializerProtocol,
    dump: Callable[[str, Any], Encoded | Grown],
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    token: bytes,
) -> NewVersion:
    """A checkpoint to save, as LangGraph gives it.

    Args:
        serde: Encodes what of the checkpoint is not JSON.
        dump: Encodes the value of a channel.
        config: Thread, namespace and parent.
        checkpoint: The checkpoint.
        metadata: Its metadata.
        new_versions: The versions of channels that changed.
        token: The save's mark.
    """
    configurable = config["configurable"]
    whole = get_checkpoint_metadata(config, metadata)
    rest = {name: value for name, value in checkpoint.items() if name != "channel_values"}
    head, text = encode_head(serde, rest, cast("dict[str, Any]", whole))
    run_id = whole.get("run_id")
    return NewVersion(
        surface=SURFACE,
        ns=configurable.get("checkpoint_ns") or "",
        checkpoint_id=checkpoint["id"],
        parent_id=configurable.get("checkpoint_id") or None,
        head=head,
        values=_values(dump, checkpoint, new_versions),
        metadata=text,
        run_id=None if run_id is None else str(run_id),
        needs=needs_of(checkpoint, whole),
        replace=True,
        token=token,
        snapshots=snapshots_of(checkpoint),
        counted=frozenset(cast("Mapping[str, Any]", whole.get(_COUNTERS) or {})),
    )


def new_writes(
    serde: SerializerProtocol, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> list[LoadedWrite]:
    """Writes to save. Those to special channels have an index of their own, whatever their place."""
    return [
        LoadedWrite(task_id, WRITES_IDX_MAP.get(channel, place), channel, task_path, Encoded(*serde.dumps_typed(value)))
        for place, (channel, value) in enumerate(writes)
    ]


def checkpoint_tuple(serde: SerializerProtocol, version: LoadedVersion, thread_id: Any) -> CheckpointTuple:
    """A checkpoint as LangGraph takes it.

    Args:
        serde: Reads the values.
        version: The checkpoint.
        thread_id: The thread's id as the caller spells it.

    Raises:
        CorruptCheckpoint: It was not saved by LangGraph, is damaged, or was written with another serialiser.
    """
    if version.surface != SURFACE:
        raise CorruptCheckpoint(
            f"Thread {version.thread_id!r} has checkpoints that LangGraph did not save. Give other stores another "
            "tenant, table_prefix or thread ids."
        )
    try:
        return _decoded(serde, version, thread_id)
    except LocusMySQLError:
        raise
    except Exception as error:  # a serialiser raises what it likes for bytes of another one
        raise CorruptCheckpoint(
            f"Checkpoint {version.checkpoint_id!r} of thread {version.thread_id!r} cannot be read with this saver's "
            f"serialiser ({type(error).__name__}: {error}). Use the serde with which it was written."
        ) from error


def _decoded(serde: SerializerProtocol, version: LoadedVersion, thread_id: Any) -> CheckpointTuple:
    rest, metadata = _decode_head(serde, version)
    values = {name: load(serde, encoded) for name, encoded in version.values().items()}
    checkpoint = cast(Checkpoint, {**rest, "channel_values": values})
    if version.parents_writes:
        _take_in_sends(serde, checkpoint, version.parents_writes)

    def config(checkpoint_id: str) -> RunnableConfig:
        return {"configurable": {"thread_id": thread_id, "checkpoint_ns": version.ns, "checkpoint_id": checkpoint_id}}

    return CheckpointTuple(
        config=config(version.checkpoint_id),
        checkpoint=checkpoint,
        metadata=cast(CheckpointMetadata, metadata),
        parent_config=None if version.parent_id is None else config(version.parent_id),
        pending_writes=pending_writes(serde, version.writes),
    )


def pending_writes(serde: SerializerProtocol, writes: Sequence[LoadedWrite]) -> list[PendingWrite]:
    """A checkpoint's writes in the order in which live execution applies them."""
    return [
        (write.task_id, write.channel, serde.loads_typed(write.value))
        for write in sorted(writes, key=lambda write: writes_sort_key(write.task_path, write.task_id, write.idx))
    ]


def filter_text(filter: Mapping[str, Any] | None) -> str | None:
    """What metadata has to contain, as JSON."""
    if not filter:
        return None
    try:
        text = queryable_json(json.loads(json.dumps(filter, allow_nan=False)))
    except (TypeError, ValueError, RecursionError):
        text = None
    if text is None:
        raise InvalidInput(
            "A filter on metadata may hold JSON values only, without NaN and lone surrogates, at most 100 levels deep "
            "and with whole numbers of at most 1,023 bits: no other metadata is searched."
        )
    if len(text) > FILTER_LIMIT:
        raise InvalidInput(
            f"A filter on metadata is {len(text)} characters of JSON; the limit is {FILTER_LIMIT}. Name fewer or "
            "smaller values."
        )
    return text


def fits(version: LoadedVersion, matching: str) -> bool:
    """Whether a checkpoint's metadata contains this JSON, compared exactly; not if it is damaged."""
    try:
        return contains(json.loads(version.metadata or "{}"), json.loads(matching))
    except (ValueError, RecursionError):
        return False


def _values(
    dump: Callable[[str, Any], Encoded | Grown], checkpoint: Checkpoint, new_versions: ChannelVersions
) -> Callable[[Base | None], Sequence[NewValue]]:
    """Tells the values to store: of the base those that did not change, and the others encoded, each once."""
    encoded: dict[str, Encoded | Grown] = {}
    versions = checkpoint["channel_versions"]

    def values(base: Base | None) -> Sequence[NewValue]:
        held = {} if base is None else base.values
        found = []
        for name, value in checkpoint["channel_values"].items():
            label = versions.get(name)
            if name in held and name not in new_versions and label is not None and held[name].label == label:
                found.append(NewValue(name, label, None))
                continue
            if name not in encoded:
                encoded[name] = dump(name, value)
            found.append(NewValue(name, label, encoded[name]))
        for name, (label, _) in held.items():  # stored under a version that is still the channel's, though not told
            told = name in checkpoint["channel_values"] or name in new_versions
            if not told and label is not None and versions.get(name) == label:
                found.append(NewValue(name, label, None))
        return found

    return values


def snapshots_of(checkpoint: Checkpoint) -> frozenset[str]:
    """The channels of which a checkpoint holds a snapshot: those that are stored as their writes elsewhere."""
    return frozenset(name for name, value in checkpoint["channel_values"].items() if isinstance(value, _DeltaSnapshot))


def needs_of(checkpoint: Checkpoint, metadata: Mapping[str, Any]) -> int:
    """What a checkpoint needs of its parent: all of it if a channel is stored as its writes, or just the sends."""
    counters = metadata.get(_COUNTERS) or {}
    if any(name not in checkpoint["channel_values"] for name in counters):
        return 1
    return 2 if checkpoint["v"] < _SENDS_INSIDE else 0


def _take_in_sends(serde: SerializerProtocol, checkpoint: Checkpoint, writes: Sequence[LoadedWrite]) -> None:
    """Add the sends of a checkpoint that has them among its parent's writes."""
    sends = [write for write in writes if write.channel == TASKS]
    if not sends:
        return
    ordered = sorted(sends, key=lambda write: writes_sort_key(write.task_path, write.task_id, write.idx))
    checkpoint["channel_values"][TASKS] = [serde.loads_typed(write.value) for write in ordered]
    versions = checkpoint["channel_versions"]
    versions[TASKS] = max(versions.values()) if versions else 1


def encode_head(
    serde: SerializerProtocol, rest: Mapping[str, Any], metadata: dict[str, Any]
) -> tuple[Encoded, str | None]:
    """A checkpoint without its values, and the metadata to find it by."""
    try:
        plain = {name: _with_lists(value) for name, value in metadata.items()}
        text = _json_text(plain)
        if text is not None and _is_json(rest):
            return Encoded("json", encode_json(rest)), text
        queried = {name: value for name, value in plain.items() if _json_text({name: value}) is not None}
        return _whole(serde, dict(rest), metadata, plain), _json_text(queried)
    except RecursionError:
        raise InvalidInput("Metadata is nested too deeply. Nothing was saved; flatten it.") from None


def _whole(serde: SerializerProtocol, rest: dict[str, Any], metadata: dict[str, Any], plain: dict[str, Any]) -> Encoded:
    """A checkpoint without its values, with all of its metadata.

    By the serialiser; if that cannot, as LangGraph's with whole numbers beyond 64 bits, by JSON.

    Args:
        serde: The serialiser.
        rest: The checkpoint.
        metadata: The metadata.
        plain: The same with lists for tuples.
    """
    try:
        kind, data = serde.dumps_typed((rest, metadata))
        return Encoded(_TYPED + kind, data)
    except TypeError as error:
        if not (_is_json(plain) and _is_json(rest)):
            if str(error) == "Recursion limit reached":  # ormsgpack's words
                raise RecursionError from error
            raise
        return Encoded(_BOTH, encode_json([rest, plain]))


def _decode_head(serde: SerializerProtocol, version: LoadedVersion) -> tuple[dict[str, Any], dict[str, Any]]:
    head = version.head
    if head.kind == "json":
        return decode_json(head.data), json.loads(version.metadata or "{}")
    rest, metadata = (
        decode_json(head.data) if head.kind == _BOTH else serde.loads_typed((head.kind.removeprefix(_TYPED), head.data))
    )
    return dict(rest), dict(metadata)


def _is_json(value: Mapping[str, Any]) -> bool:
    try:
        check_json_object(value, "")
    except InvalidInput:
        return False
    return True


def _json_text(value: dict[str, Any]) -> str | None:
    """JSON that MySQL can query, or None if JSON or MySQL has no exact form for the value."""
    return queryable_json(value) if _is_json(value) else None


def _with_lists(value: Any) -> Any:
    """A value with its tuples as lists, as LangGraph expects of metadata."""
    if isinstance(value, (list, tuple)):
        return [_with_lists(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_lists(item) for name, item in value.items()}
    return value
