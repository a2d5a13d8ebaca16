"""Checkpoints as lines of JSON, and back: the format of exports of threads. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from ...dialect.checkpoints.tables import Kind
from ...errors import InvalidInput
from ...runtime.arguments import check_checkpoint_id, check_thread_id, encode_metadata
from ...runtime.checksummed_jsonl import sealed, sealed_text
from ...runtime.exact_json import check_json_object, encode_json
from .moving import KeptCheckpoint

#: What the first line says.
FORMAT = "locus-mysql threads 1"

#: The families whose threads are exported, by the names that they have in the first line.
FAMILIES: tuple[Kind, ...] = ("agents", "dicts")

_NEEDED = ("thread", "checkpoint", "state")
_NAMES = frozenset((*_NEEDED, "seq", "parent", "created_at", "provisional", "metadata"))


@dataclass(frozen=True, slots=True)
class LineCheckpoint:
    """A checkpoint as a line tells of it.

    Args:
        thread_id: Its thread.
        checkpoint_id: Its id.
        state: Its state.
        metadata: Its metadata.
        created_at: When it was saved; None if the line does not say so.
        parent_id: What it followed; None if nothing.
        knows_parent: Whether the line says what it followed; else it follows the line before it.
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
    """The first line: whose threads follow, of which family, and which of them if not all.

    Args:
        tenant: Whose.
        family: Of which family.
        threads: Only these.
        glob: Only threads whose ids match it.
        since: Only checkpoints saved since.
    """
    content: dict[str, Any] = {"format": FORMAT, "tenant": tenant, "family": family}
    if threads is not None:
        content["threads"] = list(threads)
    if glob != "*":
        content["pattern"] = glob
    if since is not None:
        content["since"] = _time_text(since)
    return sealed(content)


def checkpoint_line(thread_id: str, kept: KeptCheckpoint, parent_id: str | None) -> bytes:
    """The line of a checkpoint. The state's text stands in it as it is stored.

    Args:
        thread_id: Its thread.
        kept: The checkpoint.
        parent_id: What it follows.
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
    return sealed_text(encode_json(begin)[:-1] + b',"state":' + kept.state.text() + b"}")


def checkpoint_of_content(content: Mapping[str, Any]) -> LineCheckpoint:
    """The checkpoint of a line.

    Raises:
        InvalidInput: It holds what cannot be stored.
    """
    if unknown := sorted(content.keys() - _NAMES):
        raise InvalidInput(f"A checkpoint has no {unknown[0]!r:.50}; known are {', '.join(sorted(_NAMES))}.")
    if missing := [name for name in _NEEDED if name not in content]:
        raise InvalidInput(f"The checkpoint has no {missing[0]!r}.")
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
        _time(content["created_at"]) if "created_at" in content else None,
        cast("str | None", parent),
        "parent" in content,
        provisional,
    )


def place_of_content(content: Mapping[str, Any]) -> tuple[str, int]:
    """The thread and the place in it that a line of an export was read from.

    Raises:
        InvalidInput: It does not say.
    """
    thread_id, seq = content.get("thread"), content.get("seq")
    if not isinstance(thread_id, str) or not isinstance(seq, int):
        raise InvalidInput("The line does not say which place in a thread it is of.")
    return thread_id, seq


def _time_text(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _time(value: Any) -> datetime:
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None or time.year < 1000:
            raise ValueError
        return time.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("created_at must be a time with its zone, as in '2026-01-31T12:00:00.000000Z'.") from None
