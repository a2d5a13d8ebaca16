"""The values that operations on transcripts take and return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias


class TranscriptKey(NamedTuple):
    """The key of a transcript, within its tenant. All texts compare by code point and hold no NUL.

    Args:
        kind: The software that writes it, such as a framework: 1 to 32 bytes of UTF-8. Different kinds are separate.
        collection: The group in which it is listed, such as a project or an app: up to 800 bytes; may be empty.
        name: Its name, such as a session's id: 1 to 800 bytes.
        part: For transcripts that belong to another one and are deleted with it, such as those of subagents: up to 800
            bytes. The main transcript's is empty.
    """

    kind: str
    collection: str
    name: str
    part: str = ""


class NewItem(NamedTuple):
    """An item to add.

    Args:
        content: Any JSON value. It is returned equal, with its keys in the same order.
        item_id: Its id: 1 to 255 bytes of UTF-8 without NUL. An item whose id the transcript has already is not added
            again. None: the item is always added.
    """

    content: Any
    item_id: str | None = None


class Item(NamedTuple):
    """A stored item.

    Attributes:
        seq: Its position: increases with each item, starts at 1, may have gaps, and is never reused in a transcript.
        item_id: Its id, if it has one.
        content: The JSON value.
        created_at: When it was added, by the server's clock, in UTC.
    """

    seq: int
    item_id: str | None
    content: Any
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Header:
    """A caller's data stored with a transcript, besides its items. Replaced as a whole.

    Args:
        state: Any JSON value.
        tag: A text that writes can require (``expected_tag``), such as a framework's own revision: up to 255 bytes.
        scope: A text by which transcripts are listed newest first, such as a user: up to 800 bytes.
    """

    state: Any = None
    tag: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A stored transcript without its items.

    Attributes:
        key: Its key.
        revision: Rises with each write; never 0. A transcript that was deleted and created again has a later one. It is
            the server's clock in microseconds since 1970 at the last write, or one more than the last revision.
        header: The caller's data. ``state`` is None if states were not read.
        items: Number of its items.
        size_bytes: Size of their stored contents.
        last_seq: The seq of the last item that was ever added; 0 if there was none.
        created_at: When it was created, in UTC.
        updated_at: When it was last written: its revision as a time, in UTC.
        expires_at: When it expires unless it is written before; None if never.
    """

    key: TranscriptKey
    revision: int
    header: Header
    items: int
    size_bytes: int
    last_seq: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Read:
    """Items of a transcript, as they were at one revision.

    Attributes:
        revision: The transcript's revision.
        items: The items, oldest first.
    """

    revision: int
    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class Window:
    """Some items of a transcript, and the transcript as it was when they were read, or later.

    Attributes:
        transcript: The transcript.
        items: The items, oldest first.
        is_current: Whether both are of one revision.
    """

    transcript: Transcript
    items: Sequence[Item]
    is_current: bool


class Written(NamedTuple):
    """The result of a write.

    Attributes:
        added: Number of items that were added; fewer than given if the transcript already had some.
        revision: The transcript's revision after the write.
    """

    added: int
    revision: int


#: The first and the last seq of a range, both included; None: to the end.
SeqRange: TypeAlias = tuple[int, int | None]

#: Computes a new state from the stored one, None if there is none, and the items that the transcript did not have yet.
Fold: TypeAlias = Callable[[Any, Sequence[NewItem]], Any]


@dataclass(frozen=True, slots=True)
class Write:
    """A write to one transcript, which it creates if it does not exist.

    Args:
        key: The transcript.
        items: Items to add at its end.
        header: Replaces the stored header; None keeps it.
        fold: Computes the state from the stored one and the items that are new; keeps tag and scope. Called again if
            another process wrote meanwhile, so it must be a pure function. Excludes ``header``.
        expected: The revision that the transcript must have; 0: it must not exist.
        expected_tag: The tag that it must have.
        tag: Replaces the stored tag; only together with a fold.
        expires: Whether the transcript expires after the configured ``ttl_s``; False for one that many other
            transcripts need.
        is_shared: Whether the transcript never expires earlier than before, as writers with another ``ttl_s`` need it.
        needs: The id of an item that it must have already.
        remove: The seqs of items to remove.
        empty: Remove all items. Excludes ``items`` and ``remove``.
        delete: Delete it, with its items. Excludes ``items`` and ``header``.
    """

    key: TranscriptKey
    items: Sequence[NewItem] = field(default_factory=tuple)
    header: Header | None = None
    fold: Fold | None = None
    expected: int | None = None
    expected_tag: str | None = None
    tag: str | None = None
    expires: bool = True
    is_shared: bool = False
    needs: str | None = None
    remove: Sequence[int] = ()
    empty: bool = False
    delete: bool = False
