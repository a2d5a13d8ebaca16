"""Converts LangGraph's checkpoints to stored ones and back. No I/O.

The saver's serialiser encodes each value by itself, so an encrypting one encrypts them all. The head of a checkpoint,
which is its ids and versions, is stored as JSON, and so are the metadata, because queries search them. If JSON cannot
represent one of these as the serialiser would, the serialiser encodes both.
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
from ...families.graphs.records import Base, LoadedGraphCheckpoint, LoadedWrite, NewGraphCheckpoint, NewValue
from ...families.graphs.values import EncodedValue, Grown
from ...runtime.arguments import check_text
from ...runtime.exact_json import check_json_object, decode_json, encode_json, queryable_json
from ...runtime.matching import contains
from .messages import load

#: Marks checkpoints that LangGraph saved.
CODEC = "graph"

#: From this format version on, a checkpoint's sends are among its own values; before, among its parent's writes.
_SENDS_INSIDE = 4

#: The longest filter on metadata, in characters of JSON.
FILTER_LIMIT = 65_536

#: The metadata in which LangGraph counts, for each `DeltaChannel`, the steps since its last snapshot.
_COUNTERS = "counters_since_delta_snapshot"

#: Types of values that JSON and the serialiser return alike; subclasses, such as enums, are not.
_PLAIN_TYPES = frozenset({str, int, float, bool, type(None)})

#: Kinds of a head that contains the metadata too: encoded by the serialiser, whose own kind follows, or as JSON.
_TYPED, _BOTH = "typed:", "both"


def new_checkpoint(
    serde: SerializerProtocol,
    encode: Callable[[str, Any], EncodedValue | Grown],
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    token: bytes,
) -> NewGraphCheckpoint:
    """Convert a LangGraph checkpoint to a `NewGraphCheckpoint`.

    Args:
        serde: Encodes the head if JSON cannot.
        encode: Encodes the value of a channel, given its name.
        config: Thread, namespace and parent.
        checkpoint: The checkpoint.
        metadata: Its metadata.
        new_versions: The versions of channels that changed.
        token: Identifies this save.
    """
    configurable = config["configurable"]
    whole = get_checkpoint_metadata(config, metadata)
    rest = {name: value for name, value in checkpoint.items() if name != "channel_values"}
    head, text = encode_head(serde, rest, cast("dict[str, Any]", whole))
    run_id = whole.get("run_id")
    return NewGraphCheckpoint(
        codec=CODEC,
        ns=configurable.get("checkpoint_ns") or "",
        checkpoint_id=checkpoint["id"],
        parent_id=configurable.get("checkpoint_id") or None,
        head=head,
        values=_values(encode, checkpoint, new_versions),
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
    """Convert writes of LangGraph's to writes to save. Special channels have fixed indexes, whatever their place."""
    check_text(task_path, "Task path")
    return [
        LoadedWrite(
            task_id,
            WRITES_IDX_MAP.get(channel, index),
            check_text(channel, "A channel's name"),
            task_path,
            EncodedValue(*serde.dumps_typed(value)),
        )
        for index, (channel, value) in enumerate(writes)
    ]


def checkpoint_tuple(serde: SerializerProtocol, loaded: LoadedGraphCheckpoint, thread_id: Any) -> CheckpointTuple:
    """Convert a stored checkpoint to LangGraph's.

    Args:
        serde: Decodes the values.
        loaded: The checkpoint.
        thread_id: The thread's id as the caller gave it, of any type.

    Raises:
        CorruptCheckpoint: It was not saved by LangGraph, is damaged, or was written with another serialiser.
    """
    if loaded.codec != CODEC:
        raise CorruptCheckpoint(
            f"Thread {loaded.thread_id!r} has checkpoints that LangGraph did not save. Give other stores another "
            "tenant, table_prefix or thread ids."
        )
    try:
        return _decoded(serde, loaded, thread_id)
    except LocusMySQLError:
        raise
    except Exception as error:  # serialisers raise any type for bytes of another one
        raise CorruptCheckpoint(
            f"Checkpoint {loaded.checkpoint_id!r} of thread {loaded.thread_id!r} cannot be read with this saver's "
            f"serialiser ({type(error).__name__}: {error}). Use the serde with which it was written."
        ) from error


def _decoded(serde: SerializerProtocol, loaded: LoadedGraphCheckpoint, thread_id: Any) -> CheckpointTuple:
    rest, metadata = _decode_head(serde, loaded)
    values = {name: load(serde, encoded) for name, encoded in loaded.values().items()}
    checkpoint = cast(Checkpoint, {**rest, "channel_values": values})
    if loaded.parents_writes:
        _add_sends(serde, checkpoint, loaded.parents_writes)

    def config(checkpoint_id: str) -> RunnableConfig:
        return {"configurable": {"thread_id": thread_id, "checkpoint_ns": loaded.ns, "checkpoint_id": checkpoint_id}}

    return CheckpointTuple(
        config=config(loaded.checkpoint_id),
        checkpoint=checkpoint,
        metadata=cast(CheckpointMetadata, metadata),
        parent_config=None if loaded.parent_id is None else config(loaded.parent_id),
        pending_writes=pending_writes(serde, loaded.writes),
    )


def pending_writes(serde: SerializerProtocol, writes: Sequence[LoadedWrite]) -> list[PendingWrite]:
    """Decode the writes at a checkpoint, in the order in which a running graph applies them."""
    return [
        (write.task_id, write.channel, serde.loads_typed(write.value))
        for write in sorted(writes, key=lambda write: writes_sort_key(write.task_path, write.task_id, write.idx))
    ]


def filter_text(filter: Mapping[str, Any] | None) -> str | None:
    """Return a filter as JSON; None for no filter.

    Raises:
        InvalidInput: MySQL cannot search for one of its values.
    """
    if not filter:
        return None
    try:
        text = queryable_json(json.loads(json.dumps(filter, allow_nan=False)))
    except (TypeError, ValueError, RecursionError):
        text = None
    if text is None:
        raise InvalidInput(
            "A filter on metadata may contain only JSON values, without NaN and lone surrogates, at most 100 levels "
            "deep and with integers of at most 1,023 bits: MySQL cannot search for others."
        )
    if len(text) > FILTER_LIMIT:
        raise InvalidInput(
            f"A filter on metadata is {len(text)} characters of JSON; the limit is {FILTER_LIMIT}. Name fewer or "
            "smaller values."
        )
    return text


def matches(loaded: LoadedGraphCheckpoint, matching: str) -> bool:
    """Return whether a checkpoint's metadata contain this JSON, compared exactly; False if they are damaged."""
    try:
        return contains(json.loads(loaded.metadata or "{}"), json.loads(matching))
    except (ValueError, RecursionError):
        return False


def _values(
    encode: Callable[[str, Any], EncodedValue | Grown], checkpoint: Checkpoint, new_versions: ChannelVersions
) -> Callable[[Base | None], Sequence[NewValue]]:
    """Return a function that lists the values to store, given the base: unchanged ones refer to those of the base.

    It may be called again with another base. Each value is encoded once.
    """
    encoded: dict[str, EncodedValue | Grown] = {}
    versions = checkpoint["channel_versions"]

    def values(base: Base | None) -> Sequence[NewValue]:
        kept = {} if base is None else base.values
        new_values = []
        for name, value in checkpoint["channel_values"].items():
            label = versions.get(name)
            if name in kept and name not in new_versions and label is not None and kept[name].label == label:
                new_values.append(NewValue(name, label, None))
                continue
            if name not in encoded:
                encoded[name] = encode(name, value)
            new_values.append(NewValue(name, label, encoded[name]))
        for name, (label, _) in kept.items():  # the caller omitted the value, but its version is still the channel's
            changed = name in checkpoint["channel_values"] or name in new_versions
            if not changed and label is not None and versions.get(name) == label:
                new_values.append(NewValue(name, label, None))
        return new_values

    return values


def snapshots_of(checkpoint: Checkpoint) -> frozenset[str]:
    """The delta channels of which a checkpoint contains a snapshot."""
    return frozenset(name for name, value in checkpoint["channel_values"].items() if isinstance(value, _DeltaSnapshot))


def needs_of(checkpoint: Checkpoint, metadata: Mapping[str, Any]) -> int:
    """Return the parent content needed: 1 everything, for a delta channel without snapshot; 2 sends; 0 nothing."""
    counters = metadata.get(_COUNTERS) or {}
    if any(name not in checkpoint["channel_values"] for name in counters):
        return 1
    return 2 if checkpoint["v"] < _SENDS_INSIDE else 0


def _add_sends(serde: SerializerProtocol, checkpoint: Checkpoint, writes: Sequence[LoadedWrite]) -> None:
    """Add the sends of a checkpoint of an old format version, which are among its parent's writes."""
    sends = [write for write in writes if write.channel == TASKS]
    if not sends:
        return
    ordered = sorted(sends, key=lambda write: writes_sort_key(write.task_path, write.task_id, write.idx))
    checkpoint["channel_values"][TASKS] = [serde.loads_typed(write.value) for write in ordered]
    versions = checkpoint["channel_versions"]
    versions[TASKS] = max(versions.values()) if versions else 1


def encode_head(
    serde: SerializerProtocol, rest: Mapping[str, Any], metadata: dict[str, Any]
) -> tuple[EncodedValue, str | None]:
    """Encode a checkpoint without its values; return it with the metadata that MySQL can search, as JSON."""
    try:
        plain = {name: _with_lists(value) for name, value in metadata.items()}
        text = _json_text(plain)
        if text is not None and _is_json(rest) and _is_plain(metadata):
            return EncodedValue("json", encode_json(rest)), text
        queried = {name: value for name, value in plain.items() if _json_text({name: value}) is not None}
        return _whole(serde, dict(rest), metadata, plain), _json_text(queried)
    except RecursionError:
        raise InvalidInput("Metadata is nested too deeply. Nothing was saved; flatten it.") from None


def _whole(
    serde: SerializerProtocol, rest: dict[str, Any], metadata: dict[str, Any], plain: dict[str, Any]
) -> EncodedValue:
    """Encode a checkpoint without its values, together with all of its metadata.

    The serialiser encodes both; or JSON if it cannot, as LangGraph's cannot encode integers beyond 64 bits and NumPy's
    floats.

    Args:
        serde: The serialiser.
        rest: The checkpoint.
        metadata: The metadata.
        plain: The metadata with lists for tuples.
    """
    try:
        kind, data = serde.dumps_typed((rest, metadata))
        return EncodedValue(_TYPED + kind, data)
    except TypeError as error:
        if not (_is_json(plain) and _is_json(rest)):
            if str(error) == "Recursion limit reached":  # the message of ormsgpack
                raise RecursionError from error
            raise
        return EncodedValue(_BOTH, encode_json([rest, plain]))


def _decode_head(serde: SerializerProtocol, loaded: LoadedGraphCheckpoint) -> tuple[dict[str, Any], dict[str, Any]]:
    head = loaded.head
    if head.kind == "json":
        return decode_json(head.data), json.loads(loaded.metadata or "{}")
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


def _is_plain(value: Any) -> bool:
    """Return whether a value has only types that JSON and the serialiser return alike: a tuple as a list."""
    kind = type(value)
    if kind is dict:
        return all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if kind is list or kind is tuple else kind in _PLAIN_TYPES


def _json_text(value: dict[str, Any]) -> str | None:
    """Return JSON that MySQL can search; None if JSON or MySQL cannot represent the value exactly."""
    return queryable_json(value) if _is_json(value) else None


def _with_lists(value: Any) -> Any:
    """Replace tuples by lists, as LangGraph expects of metadata."""
    if isinstance(value, (list, tuple)):
        return [_with_lists(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_lists(item) for name, item in value.items()}
    return value
