"""Delta coding: encodes the state of a save, and assembles states from stored rows. No I/O.

A log of a new state *continues* a base's log if the base's text is a prefix of the new text. That is decided by length
and digest, so only marks of earlier states are kept in memory, and an item changed in place is detected. Of a log that
continues, the suffix is stored; of any other, the whole text. Each log is compared separately.

If most of a state does not continue its parent, as after a compaction of a conversation, and this process holds the
parent's text, the state is stored as copies from an ancestor's texts and new bytes (see `copies`). It is the first
position of the states after it, as a whole state is.

The base is chosen by skip deltas, as in Subversion's FSFS (notes/skip-deltas in its source). The state at
position i of a lineage builds on the one at i with its lowest set bit cleared, so a load reads at most log2(i)+1 rows,
and every base that a later state needs is among the bases of the newest: a lineage is a short chain.

Provisional states (saves that a later save supersedes and deletes) form a side branch: they build on each other and on
the newest lasting state, and nothing lasting builds on them. So deleting them leaves no rows behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias, cast

from ....errors import CorruptCheckpoint
from ....records.framing import DamagedFrame, Frame
from ....records.log_digests import EMPTY, Log, Mark
from ....runtime.sealing import Sealing
from .codec import EncodedState, HashedLogs
from .payload import Change, Content, Copy, check_head, copied, find_copies, inserted_pieces, pack, unpack

#: The sealed column. Rows are identified by their tokens, as the server assigns the seq.
PAYLOAD = "payload"

#: A state up to this size is stored whole: a delta would save little and make a load read more rows.
WHOLE_BELOW_BYTES = 2048

#: Maximum number of rows from which a state that is stored as copies is assembled. Each state that continues it needs
#: one to six more; the second limit is for lists that are rewritten by each save, whose states nothing continues. One
#: statement reads six rows.
COPYING_ROWS, REWRITING_ROWS = 3, 6


_NO_LOGS: HashedLogs = {}


class Ancestor(NamedTuple):
    """A stored state that a new one may build on."""

    seq: int
    token: bytes
    base_seq: int | None
    position: int
    provisional: bool
    marks: Mapping[str, Mark]


#: A state and its bases, newest first. Before a provisional state's bases end, the lasting states' begin.
Lineage: TypeAlias = tuple[Ancestor, ...]


@dataclass(frozen=True, slots=True)
class Delta:
    """The encoded form of a new state.

    Args:
        payload: What the row is to hold.
        base: The state it builds on, or None if the payload is the whole state.
        position: Its position in the lineage.
        marks: The marks of its logs.
        parent: The state it follows, or None if it is the first.
        news: For each log that continues its parent's, how many of its items the parent has.
        discontinued: Logs of the parent that the state does not continue: they were removed or changed in place.
    """

    payload: Frame
    base: Ancestor | None
    position: int
    marks: Mapping[str, Mark]
    parent: Ancestor | None
    news: Mapping[str, int]
    discontinued: frozenset[str]


class StoredRow(NamedTuple):
    """A row of a lineage from the database, without its payload if this process holds it already."""

    seq: int
    token: bytes
    payload: bytes | None


class NotHeld(Exception):
    """A state needs the payload of a row that was left out, and this process does not hold it."""


@dataclass(frozen=True, slots=True)
class Held:
    """A state that this process holds, and with it most of the payloads of the rows that it builds on.

    Args:
        lineage: The state's.
        logs: Its logs.
        state: The state itself.
    """

    lineage: Lineage
    logs: HashedLogs
    state: EncodedState

    def below(self, token: bytes) -> Lineage:
        """Return the part of the lineage that begins with the state of a token."""
        for index, ancestor in enumerate(self.lineage):
            if ancestor.token == token:
                return self.lineage[index:]
        raise NotHeld

    def texts(self, ancestor: Ancestor) -> dict[str, list[memoryview]]:
        """Return the texts of a state's logs, except those that were discontinued."""
        return {
            name: [memoryview(log.log.text)[: ancestor.marks[name].length]]
            for name, log in self.logs.items()
            if name in ancestor.marks and log.begins_with(ancestor.marks[name])
        }


def encode_delta(
    state: EncodedState,
    hashed: HashedLogs,
    lineage: Lineage,
    *,
    provisional: bool = False,
    compression: Literal["zlib", "none"] = "zlib",
    held: HashedLogs = _NO_LOGS,
) -> Delta:
    """Encode a state that follows the newest of the lineage; a lasting state follows the newest lasting one.

    Args:
        state: The new state.
        hashed: Its logs.
        lineage: The states it may build on; empty for none.
        provisional: Whether a later save will supersede it.
        compression: Whether the payload may be compressed.
        held: The logs of an earlier state, if this process holds one: with the texts of the states it continues.
    """
    bases = _side_branch(lineage) if provisional else lasting(lineage)
    parent = bases[0] if bases else None
    base, position = _choose_base(bases)
    continued = _continued(hashed, base)
    news = continued if parent is base else _continued(hashed, parent)
    last = parent.marks if parent else {}
    marks: dict[str, Mark] = {}
    for name, log in hashed.items():
        mark, before = log.mark, last.get(name)
        # An unchanged mark is the same object in every state of the lineage, so that it takes memory only once.
        marks[name] = mark if before is None or before != mark else before
    kept = 0
    if base is not None:
        for name in continued:
            kept += base.marks[name].length
    # A provisional state always builds on the lasting one, so that a load finds the state that it continues.
    size_bytes = state.size_bytes
    stands_alone = size_bytes <= WHOLE_BELOW_BYTES or 2 * kept < size_bytes
    copies: Mapping[str, Sequence[Copy]] = {}
    if stands_alone and not provisional:
        base, position, continued = None, 0, {}
        if bases and size_bytes > WHOLE_BELOW_BYTES:
            base, copies = _choose_copied(state, hashed, bases, held, news)
            continued = _continued(hashed, base)
    known = base.marks if base else {}
    changes: list[Change] = []
    suffixes: list[memoryview] = []
    cuts: dict[str, int] = {}
    for one in state.logs:
        cuts[one.name] = one.cut
        mark, before = marks[one.name], known.get(one.name, EMPTY)
        if mark is before or mark == before:
            continue
        start = before.length if one.name in continued else 0
        copying = copies.get(one.name, ())
        pieces = list(inserted_pieces(one.text, copying)) if copying else [memoryview(one.text)[start:]]
        suffixes += pieces
        changes.append(Change(one.name, start, sum(map(len, pieces)), mark.item_count, mark.digest, copying))
    payload = pack(position, provisional, cuts, changes, state.head, suffixes, compression)
    discontinued = set()
    for name, mark in last.items():
        if mark.length and name not in news:
            discontinued.add(name)
    return Delta(payload, base, position, marks, parent, news, frozenset(discontinued))


def seal_payload(sealing: Sealing, delta: Delta, token: bytes) -> bytes:
    """Return the bytes of a row: its payload, bound to its token and that of the row it builds on."""
    return sealing.seal(*delta.payload, PAYLOAD, token, *(() if delta.base is None else (delta.base.token,)))


def extend(lineage: Lineage, delta: Delta, seq: int, token: bytes, *, provisional: bool = False) -> Lineage:
    """Return the lineage whose newest state is the one just stored.

    That of a provisional state includes all of the lasting lineage, on which the next lasting state builds.
    """
    base_seq = None if delta.base is None else delta.base.seq
    newest = Ancestor(seq, token, base_seq, delta.position, provisional, delta.marks)
    if base_seq is None:
        return (newest, *lasting(lineage)) if provisional else (newest,)
    seqs = [ancestor.seq for ancestor in lineage]
    return (newest, *lineage[seqs.index(base_seq) :])


def rows_needed(lineage: Lineage) -> list[Ancestor]:
    """Return the states from whose rows the newest of a lineage is assembled, newest first."""
    needed = [lineage[0]]
    for ancestor, base in pairwise(lineage):
        if ancestor.base_seq is None:
            break
        needed.append(base)
    return needed


def lasting(lineage: Lineage) -> Lineage:
    """Return the lineage without the provisional states at its top."""
    if not lineage or not lineage[0].provisional:
        return lineage
    first = next((index for index, ancestor in enumerate(lineage) if not ancestor.provisional), len(lineage))
    return lineage[first:]


def follows(hashed: HashedLogs, ancestor: Ancestor) -> int:
    """Return how many bytes of a state's logs an ancestor already has."""
    return sum(ancestor.marks[name].length for name in _continued(hashed, ancestor))


def assemble(
    rows: Sequence[StoredRow], thread_id: str, sealing: Sealing, held: Held | None = None
) -> tuple[EncodedState, Lineage]:
    """Assemble a state and its lineage from its row and the rows it builds on, newest first.

    Args:
        rows: The rows.
        thread_id: Their thread, for errors.
        sealing: Opens the payloads of the thread.
        held: Replaces payloads that were left out.

    Raises:
        EncryptionError: There is no key for a row, or it is in clear text although keys are given.
        CorruptCheckpoint: A row is damaged, or the rows do not belong together.
        NotHeld: A payload that was left out is needed.
    """
    texts: dict[str, list[memoryview]] = {}
    marks: Mapping[str, Mark] = {}
    ancestors: list[Ancestor] = []
    with_payload = [row for row in rows if row.payload is not None]
    if len(with_payload) < len(rows):
        if held is None:
            raise NotHeld
        below = held.below(rows[len(with_payload)].token)
        if not with_payload and below == held.lineage:
            return held.state, held.lineage
        if not with_payload:
            raise NotHeld
        ancestors = list(reversed(below))
        texts, marks = held.texts(below[0]), below[0].marks
    content = Content(0, False, {}, [], b"", memoryview(b""))
    for row in reversed(with_payload):
        base = ancestors[-1] if ancestors else None
        what = f"Checkpoint row {row.seq} of thread {thread_id!r}"
        tokens = (row.token,) if base is None else (row.token, base.token)
        try:
            content = unpack(sealing.open(cast(bytes, row.payload), what, PAYLOAD, *tokens))
            marks = _added(content, texts, marks)
            if row is with_payload[0]:
                check_head(content)
        except DamagedFrame as damage:
            raise CorruptCheckpoint(
                f"{what} cannot be read back: {damage}. Load another checkpoint of the thread, or restore the row from "
                "a backup."
            ) from None
        base_seq = None if base is None else base.seq
        ancestors.append(Ancestor(row.seq, row.token, base_seq, content.position, content.provisional, marks))
    if not texts.keys() >= {name for name, mark in marks.items() if mark.length}:
        raise NotHeld
    logs = [
        Log(name, cut, b"".join(texts[name]) if marks[name].length else b"", marks[name].item_count)
        for name, cut in content.cuts.items()
    ]
    return EncodedState(content.head, tuple(logs)), tuple(reversed(ancestors))


def _added(content: Content, texts: dict[str, list[memoryview]], marks: Mapping[str, Mark]) -> Mapping[str, Mark]:
    """Apply a row's changes of the logs to the texts of the row it builds on; return its marks.

    Raises:
        NotHeld: The text that one continues is missing.
    """
    same = marks.keys() == content.cuts.keys()
    changed = dict(marks) if same else {name: marks.get(name, EMPTY) for name in content.cuts}
    begin = 0
    for change in content.changes:
        name = change.name
        if change.start and change.start != changed[name].length:
            raise DamagedFrame("it continues a text of another length")
        end = begin + change.length
        suffix = content.suffixes[begin:end]
        if not change.start and not change.copies:
            texts[name] = [suffix]
        elif name not in texts and changed[name].length:
            raise NotHeld
        elif change.copies:
            texts[name] = copied(memoryview(b"".join(texts.get(name, ()))), change.copies, suffix)
        else:
            texts[name] = [*texts[name], suffix]
        changed[name] = change.mark
        begin = end
    if begin != len(content.suffixes):
        raise DamagedFrame("its texts are not as long as its header says")
    return changed


def _choose_base(lineage: Lineage) -> tuple[Ancestor | None, int]:
    if not lineage:
        return None, 0
    position = lineage[0].position + 1
    wanted = position & (position - 1)
    for ancestor in lineage:
        if ancestor.position == wanted:
            return ancestor, position
    return None, 0


def _choose_copied(
    state: EncodedState, hashed: HashedLogs, bases: Lineage, held: HashedLogs, news: Mapping[str, int]
) -> tuple[Ancestor | None, Mapping[str, Sequence[Copy]]]:
    """Return the ancestor from whose texts a state is copied, and the copies; None if less than half of it is equal.

    A state that continues its parent, and only has outgrown its base, is stored whole.
    """
    if 2 * sum(bases[0].marks[name].length for name in news) >= state.size_bytes:
        return None, {}
    limit = COPYING_ROWS if bases[0].position else REWRITING_ROWS
    base = next((one for at, one in enumerate(bases) if len(rows_needed(bases[at:])) < limit), None)
    if base is None:
        return None, {}
    continued = _continued(hashed, base)
    kept = sum(base.marks[name].length for name in continued)
    copies: dict[str, Sequence[Copy]] = {}
    for log in state.logs:
        mark, earlier = base.marks.get(log.name, EMPTY), held.get(log.name)
        if log.name not in continued and earlier is not None and earlier.begins_with(mark):
            copies[log.name] = find_copies(earlier.log.text[: mark.length], log.text)
            kept += sum(copy.copied for copy in copies[log.name])
    return (base, copies) if 2 * kept >= state.size_bytes else (None, {})


def _side_branch(lineage: Lineage) -> Lineage:
    """Return the lineage for a provisional state: positions count from the newest lasting state."""
    roots = lasting(lineage)
    return lineage[: len(lineage) - len(roots)] + tuple(root._replace(position=0) for root in roots[:1])


def _continued(hashed: HashedLogs, ancestor: Ancestor | None) -> dict[str, int]:
    """Return the logs that continue an ancestor's, each with the number of items that the ancestor has."""
    if ancestor is None:
        return {}
    continued = {}
    for name, log in hashed.items():
        mark = ancestor.marks.get(name)
        if mark is not None and (mark is log.mark or log.begins_with(mark)):
            continued[name] = mark.item_count
    return continued
