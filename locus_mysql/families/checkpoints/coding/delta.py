"""Delta coding: what a save stores, and how a load puts it together again. No I/O.

A log of a new state *continues* a base's log if the base's text is a prefix of the new text. That is told by length
and digest, so of earlier states only marks are kept in memory, and an item changed in place is noticed. Of a log that
continues, the suffix is stored; of any other, the whole text. Each log is judged by itself.

Which earlier state is the base: skip deltas, as in Subversion's FSFS (notes/skip-deltas in its source). The state at
position i of a lineage builds on the one at i with its lowest set bit cleared, so a load reads at most log2(i)+1 rows,
and every base that a later state needs is among the bases of the newest: a lineage is a short chain.

Provisional states (saves that a later save supersedes and deletes) form a side branch: they build on each other and on
the newest lasting state, and nothing lasting builds on them. So deleting them leaves nothing behind.

A payload is a format byte, a checksum and a body: header, head and suffixes. The checksum is of the body and of the
tokens of the row and of its base. So what is put together is what was saved: a bit that flipped, a payload in another
row and a row that builds on another one are noticed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from ....errors import CorruptCheckpoint
from ....runtime.exact_json import decode_json, encode_json
from .codec import EncodedState, Log
from .digests import EMPTY, HashedLogs, Mark

#: A state up to this size is stored whole: a delta would save little and make a load read more rows.
WHOLE_BELOW_BYTES = 2048

#: Bodies in this range are compressed: shorter ones gain nothing, and of longer ones a load would notice.
COMPRESS_BYTES = range(256, 32_768)

_PLAIN, _DEFLATED = b"\x01", b"\x02"
_CHECKSUM = struct.Struct("<I")
_BODY_AT = 1 + _CHECKSUM.size
_LENGTHS = struct.Struct("<II")
_DIGEST_HEX = frozenset({0, 32})


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
    """What to store for a new state.

    Args:
        payload: The bytes of the row.
        base: The state it builds on, or None if it is whole.
        position: Its place in the lineage.
        marks: What to remember of it.
        parent: The state it follows, or None if it is the first.
        news: For each log that continues its parent's, how many of its items the parent has.
        discontinued: Logs of the parent that do not go on: gone, or changed otherwise than by appending.
    """

    payload: bytes
    base: Ancestor | None
    position: int
    marks: Mapping[str, Mark]
    parent: Ancestor | None
    news: Mapping[str, int]
    discontinued: frozenset[str]


class StoredRow(NamedTuple):
    """A row of a lineage as the database gives it; without its payload where that is held already."""

    seq: int
    token: bytes
    payload: bytes | None


class NotHeld(Exception):
    """What a state needs of a row whose payload was left out is not held."""


@dataclass(frozen=True, slots=True)
class Held:
    """A state that this process has, and with it most of what the rows say that it builds on.

    Args:
        lineage: The state's.
        logs: Its logs.
        state: The state itself.
    """

    lineage: Lineage
    logs: HashedLogs
    state: EncodedState

    def below(self, token: bytes) -> Lineage:
        """The part of the lineage that begins with the state of a token."""
        for place, ancestor in enumerate(self.lineage):
            if ancestor.token == token:
                return self.lineage[place:]
        raise NotHeld

    def texts(self, ancestor: Ancestor) -> dict[str, list[memoryview]]:
        """The texts of a state's logs, but for those that did not go on."""
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
    token: bytes,
    provisional: bool = False,
    compression: Literal["zlib", "none"] = "zlib",
) -> Delta:
    """What to store for a state that follows the newest of the lineage; a lasting one, the newest lasting state.

    Args:
        state: The new state.
        hashed: Its logs.
        lineage: The states it may build on; empty for none.
        token: Of the row it is stored in.
        provisional: Whether a later save will supersede it.
        compression: Whether the payload may be compressed.
    """
    bases = _side_branch(lineage) if provisional else lasting(lineage)
    parent = bases[0] if bases else None
    base, position = _choose_base(bases)
    continued = _continued(hashed, base)
    news = continued if parent is base else _continued(hashed, parent)
    last = parent.marks if parent else {}
    # A mark that did not change is the same object in every state of the lineage, so that it takes memory once.
    marks = {name: last[name] if last.get(name) == log.mark else log.mark for name, log in hashed.items()}
    kept = sum(base.marks[name].length for name in continued) if base else 0
    # A provisional state always builds on the lasting one, so that whoever loads it finds out what it goes on from.
    size_bytes = state.size_bytes
    stands_alone = size_bytes <= WHOLE_BELOW_BYTES or 2 * kept < size_bytes
    if stands_alone and not provisional:
        base, position, continued = None, 0, {}
    known = base.marks if base else {}
    changes: list[tuple[str, int, int, int, str]] = []
    suffixes = []
    for log in state.logs:
        mark, before = marks[log.name], known.get(log.name, EMPTY)
        if mark is before or mark == before:
            continue
        start = before.length if log.name in continued else 0
        suffixes.append(memoryview(log.text)[start:])
        changes.append((log.name, start, len(log.text) - start, mark.item_count, mark.digest.hex()))
    cuts = {log.name: log.cut for log in state.logs}
    header = {"p": position, "t": int(provisional), "c": cuts, "l": changes}
    tokens = token if base is None else token + base.token
    payload = _pack(header, state.head, suffixes, tokens, compression)
    discontinued = frozenset(name for name, mark in last.items() if mark.length and name not in news)
    return Delta(payload, base, position, marks, parent, news, discontinued)


def extend(lineage: Lineage, delta: Delta, seq: int, token: bytes, *, provisional: bool = False) -> Lineage:
    """The lineage whose newest state is the one just stored.

    That of a provisional state goes on with all of the lasting lineage: the next lasting state builds there.
    """
    base_seq = None if delta.base is None else delta.base.seq
    newest = Ancestor(seq, token, base_seq, delta.position, provisional, delta.marks)
    if base_seq is None:
        return (newest, *lasting(lineage)) if provisional else (newest,)
    seqs = [ancestor.seq for ancestor in lineage]
    return (newest, *lineage[seqs.index(base_seq) :])


def rows_needed(lineage: Lineage) -> list[Ancestor]:
    """The states from whose rows the newest of a lineage is put together, newest first."""
    needed = [lineage[0]]
    for ancestor, base in pairwise(lineage):
        if ancestor.base_seq is None:
            break
        needed.append(base)
    return needed


def lasting(lineage: Lineage) -> Lineage:
    """The lineage without the provisional states at its top."""
    first = next((index for index, ancestor in enumerate(lineage) if not ancestor.provisional), len(lineage))
    return lineage[first:]


def follows(hashed: HashedLogs, ancestor: Ancestor) -> int:
    """How many bytes of a state's logs an ancestor already has."""
    return sum(ancestor.marks[name].length for name in _continued(hashed, ancestor))


def assemble(rows: Sequence[StoredRow], thread_id: str, held: Held | None = None) -> tuple[EncodedState, Lineage]:
    """A state and its lineage, from its row and the rows it builds on, newest first.

    Args:
        rows: The rows.
        thread_id: Their thread, to be named in an error.
        held: Stands in for payloads that were left out.

    Raises:
        CorruptCheckpoint: A row is damaged, or the rows do not belong together.
        NotHeld: A payload that was left out is needed.
    """
    texts: dict[str, list[memoryview]] = {}
    marks: Mapping[str, Mark] = {}
    ancestors: list[Ancestor] = []
    there = [row for row in rows if row.payload is not None]
    if len(there) < len(rows):
        if held is None:
            raise NotHeld
        below = held.below(rows[len(there)].token)
        if not there and below == held.lineage:
            return held.state, held.lineage
        if not there:
            raise NotHeld
        ancestors = list(reversed(below))
        texts, marks = held.texts(below[0]), below[0].marks
    content = _Content(0, False, {}, [], b"", memoryview(b""))
    for row in reversed(there):
        base = ancestors[-1] if ancestors else None
        try:
            content = _unpack(cast(bytes, row.payload), row.token if base is None else row.token + base.token)
            marks = _added(content, texts, marks)
            if row is there[0]:
                _check_head(content)
        except _Damaged as damage:
            raise CorruptCheckpoint(
                f"Checkpoint row {row.seq} of thread {thread_id!r} cannot be read back: {damage}. Load another "
                "checkpoint of the thread, or restore the row from a backup."
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


class Outline(NamedTuple):
    """What the beginning of a row's payload tells of its state.

    Args:
        head_bytes: How long the state is without what is in its lists.
        head: That text, if the beginning was long enough to hold it.
        lists: The names of its lists.
        marks: Of those lists that the row it builds on has otherwise.
    """

    head_bytes: int
    head: bytes | None
    lists: Sequence[str]
    marks: Mapping[str, Mark]


def outline(beginning: bytes) -> Outline:
    """What the beginning of a payload tells, for figures and charts: it cannot be held against the checksum.

    Args:
        beginning: The first bytes of a payload, 4,096 or more, or all of it.

    Raises:
        CorruptCheckpoint: It is damaged, or its header is longer than that.
    """
    kind, body = beginning[:1], memoryview(beginning)[_BODY_AT:]
    try:
        if kind == _DEFLATED:
            body = memoryview(zlib.decompressobj(-15, zdict=DICTIONARY).decompress(body, COMPRESS_BYTES.stop))
        elif kind != _PLAIN:
            raise _Damaged("its format is none that this version knows")
        header_length, head_bytes = _LENGTHS.unpack_from(body)
        head_at = _LENGTHS.size + header_length
        _, _, cuts, changes = _parse_header(decode_json(bytes(body[_LENGTHS.size : head_at])))
    except (_Damaged, struct.error, zlib.error, CorruptCheckpoint):
        raise CorruptCheckpoint("The beginning of a checkpoint's row cannot be read.") from None
    head = bytes(body[head_at : head_at + head_bytes])
    marks = {name: Mark(start + length, count, digest) for name, start, length, count, digest in changes}
    return Outline(head_bytes, head if len(head) == head_bytes else None, tuple(cuts), marks)


def whole_bytes(outlines: Sequence[Outline]) -> int:
    """How long a state's text is.

    Args:
        outlines: Of its row and those it builds on, newest first.
    """
    marks: dict[str, Mark] = {}
    for one in reversed(outlines):
        marks = {name: one.marks.get(name, marks.get(name, EMPTY)) for name in one.lists}
    return outlines[0].head_bytes + sum(mark.length for mark in marks.values())


class _Damaged(Exception):
    """What is wrong with a row, to stand in a sentence. Never what it holds."""


#: What a row says of one log: its name, how many of its first bytes are those of the base's, how many others are in the
#: row, how many items it has, and its digest.
_Change: TypeAlias = tuple[str, int, int, int, bytes]


class _Content(NamedTuple):
    """What a payload says."""

    position: int
    provisional: bool
    cuts: Mapping[str, int]
    changes: Sequence[_Change]
    head: bytes
    suffixes: memoryview


def _added(content: _Content, texts: dict[str, list[memoryview]], marks: Mapping[str, Mark]) -> Mapping[str, Mark]:
    """Let a row's changes of the logs take effect on the texts of the row it builds on; return what its marks become.

    Raises:
        NotHeld: A text goes on that is not there.
    """
    same = marks.keys() == content.cuts.keys()
    changed = dict(marks) if same else {name: marks.get(name, EMPTY) for name in content.cuts}
    begin = 0
    for name, start, length, item_count, digest in content.changes:
        if start and start != changed[name].length:
            raise _Damaged("it goes on from a text of another length")
        end = begin + length
        suffix = content.suffixes[begin:end]
        if not start:
            texts[name] = [suffix]
        elif name in texts:
            texts[name] = [*texts[name], suffix]
        else:
            raise NotHeld
        changed[name] = Mark(start + length, item_count, digest)
        begin = end
    if begin != len(content.suffixes):
        raise _Damaged("its texts are not as long as its header says")
    return changed


def _choose_base(lineage: Lineage) -> tuple[Ancestor | None, int]:
    if not lineage:
        return None, 0
    position = lineage[0].position + 1
    wanted = position & (position - 1)
    base = next((ancestor for ancestor in lineage if ancestor.position == wanted), None)
    return (base, position) if base else (None, 0)


def _side_branch(lineage: Lineage) -> Lineage:
    """The lineage as a provisional state sees it: positions count from the newest lasting state."""
    roots = lasting(lineage)
    return lineage[: len(lineage) - len(roots)] + tuple(root._replace(position=0) for root in roots[:1])


def _continued(hashed: HashedLogs, ancestor: Ancestor | None) -> dict[str, int]:
    """The logs that continue an ancestor's, each with how many items the ancestor has of it."""
    if ancestor is None:
        return {}
    continued = {}
    for name, log in hashed.items():
        mark = ancestor.marks.get(name)
        if mark is not None and (mark is log.mark or log.begins_with(mark)):
            continued[name] = mark.item_count
    return continued


def _pack(
    header: Mapping[str, object],
    head: bytes,
    suffixes: Sequence[memoryview],
    tokens: bytes,
    compression: Literal["zlib", "none"],
) -> bytes:
    text = encode_json(header)
    kind = _PLAIN
    body: list[bytes | memoryview] = [_LENGTHS.pack(len(text), len(head)), text, head, *suffixes]
    if compression == "zlib" and (length := sum(map(len, body))) in COMPRESS_BYTES:
        # A window of 16 KB and small tables: made for each payload, they take as long as the compression.
        compressor = zlib.compressobj(1, zlib.DEFLATED, -14, 6, zdict=DICTIONARY)
        deflated = compressor.compress(b"".join(body)) + compressor.flush()
        if len(deflated) < length:
            kind, body = _DEFLATED, [deflated]
    checksum = zlib.crc32(kind + tokens)
    for piece in body:
        checksum = zlib.crc32(piece, checksum)
    return b"".join([kind, _CHECKSUM.pack(checksum), *body])


def _unpack(payload: bytes, tokens: bytes) -> _Content:
    """What a payload says.

    Args:
        payload: The bytes of a row.
        tokens: The row's token, followed by that of the row it builds on.
    """
    if not payload:
        raise _Damaged("it is empty")
    kind, body = payload[:1], memoryview(payload)[_BODY_AT:]
    if kind not in {_PLAIN, _DEFLATED}:
        raise _Damaged("its format is none that this version knows; perhaps a later version wrote it")
    if len(payload) < _BODY_AT or _CHECKSUM.unpack_from(payload, 1)[0] != zlib.crc32(body, zlib.crc32(kind + tokens)):
        raise _Damaged("its bytes were changed, or the row it builds on is gone")
    if kind == _DEFLATED:
        body = memoryview(_inflated(body))
    return _content(body)


def _content(body: memoryview) -> _Content:
    try:
        header_length, head_length = _LENGTHS.unpack_from(body)
        head_at = _LENGTHS.size + header_length
        suffixes_at = head_at + head_length
        header = decode_json(bytes(body[_LENGTHS.size : head_at]))
    except (struct.error, CorruptCheckpoint):
        raise _Damaged("its header is damaged") from None
    head, suffixes = bytes(body[head_at:suffixes_at]), body[suffixes_at:]
    if len(head) != head_length:
        raise _Damaged("it was cut off")
    return _Content(*_parse_header(header), head, suffixes)


def _inflated(deflated: memoryview) -> bytes:
    """The body of a compressed payload, which is never longer than what is compressed."""
    inflater = zlib.decompressobj(-15, zdict=DICTIONARY)
    try:
        body = inflater.decompress(deflated, COMPRESS_BYTES.stop)
    except zlib.error:
        raise _Damaged("it cannot be decompressed") from None
    if not inflater.eof or inflater.unused_data or len(body) not in COMPRESS_BYTES:
        raise _Damaged(f"it is not what a body of less than {COMPRESS_BYTES.stop} bytes is compressed to")
    return body


def _parse_header(header: Any) -> tuple[int, bool, dict[str, int], list[_Change]]:
    """Position, whether provisional, cuts and changes."""
    try:
        position, provisional, cuts, changes = header["p"], header["t"], header["c"], header["l"]
        numbers = [position, provisional, *cuts.values()]
        parsed = []
        for name, start, length, item_count, digest in changes:
            numbers += (start, length, item_count)
            if name not in cuts or len(digest) not in _DIGEST_HEX:
                raise _Damaged("its header is damaged")
            parsed.append((name, start, length, item_count, bytes.fromhex(digest)))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _Damaged("its header is damaged") from None
    if set(map(type, numbers)) != {int} or min(numbers) < 0:
        raise _Damaged("its header is damaged")
    return position, bool(provisional), cuts, parsed


def _check_head(content: _Content) -> None:
    """A state is an object, and its logs are lists cut out of it."""
    head, at = content.head, 0
    if not (head.startswith(b"{") and head.endswith(b"}")):
        raise _Damaged("it is not the state of anything")
    for cut in content.cuts.values():
        if cut <= at or head[cut - 1 : cut + 1] != b"[]":
            raise _Damaged("its lists do not belong where its header says")
        at = cut


#: What the rows of small deltas repeat: a header, the fields of a Locus `AgentState` and of its messages. Part of the
#: format: never change it, only add another beside it under a new format byte.
DICTIONARY = (
    b'{"p":1,"t":0,"c":{"messages":50,"tool_executions":109,"reasoning_steps":129,"confidence_history":190,'
    b'"tool_history":208,"tool_loop_read_only_tools":300,"tool_loop_warnings":324,"terminal_tools":342,"errors":780},'
    b'"l":[["tool_history",["reasoning_steps",["tool_executions",["messages",'
    b'{"run_id":"","agent_id":null,"messages":[],"iteration":1,"max_iterations":20,"tool_executions":[],'
    b'"reasoning_steps":[],"confidence":0.0,"confidence_threshold":0.85,"confidence_history":[],"tool_history":[],'
    b'"tool_loop_threshold":3,"tool_loop_read_only_threshold":null,"tool_loop_read_only_tools":[],'
    b'"tool_loop_warnings":[],"terminal_tools":[],"total_tokens_used":0,"prompt_tokens_used":0,'
    b'"completion_tokens_used":0,"cache_creation_tokens_used":0,"cache_read_tokens_used":0,"cached_tokens_used":0,'
    b'"cache_write_tokens_used":0,"reported_cost_usd":0.0,"reported_cost_calls":0,"token_budget":null,'
    b'"input_price_per_mtok":null,"output_price_per_mtok":null,"cost_usd_used":0.0,"cost_budget_usd":null,'
    b'"completion_mode":"auto","errors":[],"provider_state":null,"metadata":{},'
    b'"started_at":"2026-01-01T00:00:00.000000Z","updated_at":"2026-01-01T00:00:00.000000Z"}'
    b'{"iteration":1,"thought":null,"tool_calls":[{"id":"call_","name":"","arguments":{},"malformed_arguments":null}],'
    b'"tool_results":[{"tool_name":"","tool_call_id":"call_","arguments":{},"result":"","error":null,"duration_ms":0.0,'
    b'"timestamp":"2026-","idempotent_cache_hit":false}],"reflection":null,"confidence_delta":0.0,"timestamp":"2026-"},'
    b'{"role":"tool","content":"","tool_calls":[],"tool_call_id":"call_","name":"","metadata":{}},'
    b'{"role":"assistant","content":"","tool_calls":[],"tool_call_id":null,"name":null,"metadata":{}},'
    b'{"role":"user","content":"","tool_calls":[],"tool_call_id":null,"name":null,"metadata":{}}'
)
