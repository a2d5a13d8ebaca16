"""Checkpoints as lines of JSON, and back: the format of exports of threads. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from ...errors import InvalidInput
from ...runtime.arguments import check_checkpoint_id, check_thread_id, encode_metadata
from ...runtime.checksummed_jsonl import checksummed, checksummed_text
from ...runtime.exact_json import check_json_object, encode_json
from ...runtime.server_times import from_text
from .moving import KeptCheckpoint
from .statements.tables import Kind

#: The format in the first line.
FORMAT = "locus-mysql threads 1"

_NEEDED = ("thread", "checkpoint", "state")
_NAMES = frozenset((*_NEEDED, "seq", "parent", "created_at", "provisional", "metadata"))


@dataclass(frozen=True, slots=True)
class LineCheckpoint:
    """The checkpoint in a line.

    Args:
        thread_id: Its thread.
        checkpoint_id: Its id.
        state: Its state.
        metadata: Its metadata.
        created_at: When it was saved; None if the line has no time.
        parent_id: The checkpoint that it follows; None if none.
        knows_parent: Whether the line has that id; else it follows the line before it.
        provisional: Whether a later save of its turn would have deleted it.
    """

    thread_id: str
    checkpoint_id: str
    state: dict[str, Any]
    metadata: dict[str, Any]
    created_at: datetime | None
    parent_id: str | None
    knows_parent: bool
    provisional: bool


def head_line(
    tenant: str, family: Kind, *, threads: Sequence[str] | None = None, glob: str = "*", since: datetime | None = None
) -> bytes:
    """Return the first line: the tenant, the family, and the selection if not all threads are exported.

    Args:
        tenant: The tenant.
        family: The name of the family.
        threads: The ids of the threads, if only some are exported.
        glob: The glob that their ids match.
        since: The time from which checkpoints are exported.
    """
    content: dict[str, Any] = {"format": FORMAT, "tenant": tenant, "family": family}
    if threads is not None:
        content["threads"] = list(threads)
    if glob != "*":
        content["pattern"] = glob
    if since is not None:
        content["since"] = _time_text(since)
    return checksummed(content)


def checkpoint_line(thread_id: str, kept: KeptCheckpoint, parent_id: str | None) -> bytes:
    """Return the line of a checkpoint, with the text of its state as it is stored.

    Args:
        thread_id: Its thread.
        kept: The checkpoint.
        parent_id: The checkpoint that it follows.
    """
    begin: dict[str, Any] = {
        "thread": thread_id,
        "checkpoint": kept.checkpoint_id,
        "seq": kept.seq,
        "parent": parent_id,
        "created_at": _time_text(kept.created_at),
    }
    if kept.provisional:
        begin["provisional"] = True
    if kept.metadata:
        begin["metadata"] = kept.metadata
    return checksummed_text(encode_json(begin)[:-1] + b',"state":' + kept.state.text() + b"}")


def checkpoint_of_content(content: Mapping[str, Any]) -> LineCheckpoint:
    """Return the checkpoint in a line.

    Raises:
        InvalidInput: It cannot be stored.
    """
    if unknown := sorted(content.keys() - _NAMES):
        raise InvalidInput(f"A checkpoint has no field {unknown[0]!r:.50}; known are {', '.join(sorted(_NAMES))}.")
    if missing := [name for name in _NEEDED if name not in content]:
        raise InvalidInput(f"The checkpoint lacks the field {missing[0]!r}.")
    state, metadata = content["state"], content.get("metadata", {})
    check_json_object(state, "The state")
    encode_metadata(metadata)
    parent = content.get("parent")
    if parent is not None:
        check_checkpoint_id(parent)
    provisional = content.get("provisional", False)
    if not isinstance(provisional, bool):
        raise InvalidInput("provisional must be true or false.")
    return LineCheckpoint(
        check_thread_id(content["thread"]),
        check_checkpoint_id(content["checkpoint"]),
        cast("dict[str, Any]", state),
        cast("dict[str, Any]", metadata),
        from_text(content["created_at"], "created_at") if "created_at" in content else None,
        cast("str | None", parent),
        "parent" in content,
        provisional,
    )


def key_of_content(content: Mapping[str, Any]) -> tuple[str, int]:
    """Return the thread and the seq of a line of an export.

    Raises:
        InvalidInput: The line lacks them.
    """
    thread_id, seq = content.get("thread"), content.get("seq")
    if not isinstance(thread_id, str) or not isinstance(seq, int):
        raise InvalidInput("The line lacks its thread or its seq.")
    return thread_id, seq


def _time_text(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
