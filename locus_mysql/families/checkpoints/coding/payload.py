"""The bytes of a checkpoint's payload: `pack`, `unpack`, `outline` for its beginning; and copies of older text.

A payload is a format byte and a body: header, head and suffixes. It is sealed with the tokens of the row and of its
base. So an assembled state is exactly the saved one: a flipped bit, a payload in another row and a row that builds on
another one are detected.

Formats 1 and 2 are those of `Framing`. Formats 3 and 4 are the same, for a row with copies, which versions before it
cannot read: they refuse an unknown format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ....errors import CorruptCheckpoint
from ....records.framing import DEFLATED, UNCOMPRESSED, DamagedFrame, Frame, Framing
from ....records.log_digests import EMPTY, Mark
from ....runtime.exact_json import decode_json, encode_json
from ....runtime.sealing import Opened, unverified

#: Texts below this size are stored whole: copies would save little.
SMALLEST_COPIED_FROM_BYTES = 4_096

#: A shorter run of equal pieces is stored again, as the description of a copy takes up to 20 bytes.
SMALLEST_COPY_BYTES = 64

#: Maximum number of copies in a row: the longest are chosen. So a row's header stays within the bytes that lists and
#: charts read.
MAX_COPIES = 100

# A piece begins with the brace.
_SEPARATOR = b",{"


class Copy(NamedTuple):
    """One step of assembling a text.

    Args:
        offset: The position in the older text from which bytes are copied.
        copied: The number of these bytes.
        inserted: The number of bytes of the row that follow them.
    """

    offset: int
    copied: int
    inserted: int


class _Run(NamedTuple):
    """Equal bytes of both texts."""

    at: int
    offset: int
    length: int


def find_copies(older: bytes, text: bytes) -> list[Copy]:
    """Return the copies that make a text of an older one; empty if too little is equal.

    Args:
        older: The text to copy from.
        text: The text to describe.
    """
    if min(len(older), len(text)) < SMALLEST_COPIED_FROM_BYTES:
        return []
    runs = [run for run in _runs(older, text) if run.length >= SMALLEST_COPY_BYTES]
    if not runs:
        return []
    if sum(run.length for run in runs) > len(older):  # as the reader allows no more, equal items are stored again
        return []
    if len(runs) > MAX_COPIES:
        runs = sorted(sorted(runs, key=lambda run: -run.length)[:MAX_COPIES])
    ends = [*[run.at for run in runs[1:]], len(text)]
    copies = [Copy(0, 0, runs[0].at)] if runs[0].at else []
    for run, end in zip(runs, ends, strict=True):
        copies.append(Copy(run.offset, run.length, end - run.at - run.length))
    return copies


def inserted_pieces(text: bytes, copies: Sequence[Copy]) -> Iterator[memoryview]:
    """Return the bytes of a text that its copies do not contain."""
    view, at = memoryview(text), 0
    for copy in copies:
        at += copy.copied
        yield view[at : at + copy.inserted]
        at += copy.inserted


def copied(older: memoryview, copies: Sequence[Copy], inserted: memoryview) -> list[memoryview]:
    """Return the pieces of a text.

    Args:
        older: The text to copy from.
        copies: What to copy.
        inserted: The bytes to insert.

    Raises:
        DamagedFrame: The older text is too short, or more is copied than it has: so rows cannot grow without end.
    """
    pieces, at = [], 0
    if sum(copy.copied for copy in copies) > len(older):
        raise DamagedFrame("it copies from a text of another length")
    for copy in copies:
        if copy.offset + copy.copied > len(older):
            raise DamagedFrame("it copies from a text of another length")
        pieces += [older[copy.offset : copy.offset + copy.copied], inserted[at : at + copy.inserted]]
        at += copy.inserted
    return pieces


def _runs(older: bytes, text: bytes) -> Iterator[_Run]:
    """Return equal runs of pieces, in the order of the text. None is part of another one."""
    known, starts = _pieces(older)
    pieces, at = _pieces(text)
    # The first piece, before the first brace, is not copied.
    found: dict[bytes, int] = {}
    for index in range(len(known) - 1, 0, -1):
        found[known[index]] = index
    here = 1
    while here < len(pieces):
        there = found.get(pieces[here])
        if there is None:
            here += 1
            continue
        begin, offset = here, starts[there]
        while here < len(pieces) and there < len(known) and pieces[here] == known[there]:
            here, there = here + 1, there + 1
        end = at[here - 1] + 1 + len(pieces[here - 1])
        comma = here < len(pieces) and there < len(known)
        yield _Run(at[begin], offset, end + comma - at[begin])


def _pieces(text: bytes) -> tuple[list[bytes], list[int]]:
    """Divide a text. Return its pieces without their first brace, and the position of each piece's brace."""
    pieces = (b"," + text).split(_SEPARATOR)
    starts, at = [], -1 - len(_SEPARATOR)
    for piece in pieces:
        starts.append(at + 1)
        at += len(piece) + len(_SEPARATOR)
    return pieces, starts


_LENGTHS = struct.Struct("<II")
_DIGEST_HEX = frozenset({0, 32})

#: The format of a row with copies, by that of a row without.
_COPYING_FORMATS = {UNCOMPRESSED: b"\x03", DEFLATED: b"\x04"}


class Change(NamedTuple):
    """A row's description of one log.

    Args:
        name: The name of the log.
        start: The length of the prefix taken from the base.
        length: The number of bytes in the row.
        item_count: The number of items.
        digest: The digest of the text.
        copies: What is copied from the base's text, which the log does not continue; ``start`` is then 0.
    """

    name: str
    start: int
    length: int
    item_count: int
    digest: bytes
    copies: Sequence[Copy] = ()

    @property
    def mark(self) -> Mark:
        """Return the mark of the text."""
        copied = sum(copy.copied for copy in self.copies)
        return Mark(self.start + copied + self.length, self.item_count, self.digest)

    def to_json(self) -> list[object]:
        """Return the form in a header."""
        described: list[object] = [self.name, self.start, self.length, self.item_count, self.digest.hex()]
        return [*described, [number for copy in self.copies for number in copy]] if self.copies else described


class Content(NamedTuple):
    """The content of a payload."""

    position: int
    provisional: bool
    cuts: Mapping[str, int]
    changes: Sequence[Change]
    head: bytes
    suffixes: memoryview


def pack(
    position: int,
    provisional: bool,
    cuts: Mapping[str, int],
    changes: Sequence[Change],
    head: bytes,
    suffixes: Sequence[memoryview],
    compression: Literal["zlib", "none"],
) -> Frame:
    """Return a payload that is ready to be sealed.

    Args:
        position: The position in the lineage.
        provisional: Whether a later save will supersede the state.
        cuts: The positions in the head at which the texts of the lists belong.
        changes: The lists that differ from those of the row it builds on.
        head: The state's text without the items of its lists.
        suffixes: The bytes of the changes, in their order.
        compression: Whether it may be compressed.
    """
    described, has_copies = [], False
    for change in changes:
        described.append(change.to_json())
        has_copies = has_copies or bool(change.copies)
    text = encode_json({"p": position, "t": int(provisional), "c": cuts, "l": described})
    frame = _FRAMING.compress((_LENGTHS.pack(len(text), len(head)), text, head, *suffixes), compression)
    return Frame(_COPYING_FORMATS[frame.kind], frame.pieces) if has_copies else frame


def unpack(payload: Opened) -> Content:
    """Return the content of a payload."""
    return _content(memoryview(_FRAMING.content(payload)))


def _content(body: memoryview) -> Content:
    try:
        header_length, head_length = _LENGTHS.unpack_from(body)
        head_at = _LENGTHS.size + header_length
        suffixes_at = head_at + head_length
        header = decode_json(bytes(body[_LENGTHS.size : head_at]))
    except (struct.error, CorruptCheckpoint):
        raise DamagedFrame("its header is damaged") from None
    head, suffixes = bytes(body[head_at:suffixes_at]), body[suffixes_at:]
    if len(head) != head_length:
        raise DamagedFrame("it was cut off")
    return Content(*_parse_header(header), head, suffixes)


def _parse_header(header: Any) -> tuple[int, bool, dict[str, int], list[Change]]:
    """Position, provisional flag, cuts and changes."""
    try:
        position, provisional, cuts, changes = header["p"], header["t"], header["c"], header["l"]
        numbers = [position, provisional, *cuts.values()]
        parsed = []
        for name, start, length, item_count, digest, *copying in changes:
            numbers += (start, length, item_count)
            if name not in cuts or len(digest) not in _DIGEST_HEX:
                raise DamagedFrame("its header is damaged")
            copies = _parse_copies(start, length, *copying) if copying else ()
            parsed.append(Change(name, start, length, item_count, bytes.fromhex(digest), copies))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DamagedFrame("its header is damaged") from None
    if set(map(type, numbers)) != {int} or min(numbers) < 0:
        raise DamagedFrame("its header is damaged")
    return position, bool(provisional), cuts, parsed


def _parse_copies(start: int, length: int, numbers: list[int]) -> list[Copy]:
    if start or not numbers or len(numbers) % 3 or set(map(type, numbers)) != {int} or min(numbers) < 0:
        raise DamagedFrame("its header is damaged")
    copies = [Copy(*numbers[at : at + 3]) for at in range(0, len(numbers), 3)]
    if sum(copy.inserted for copy in copies) != length:
        raise DamagedFrame("its header is damaged")
    return copies


def check_head(content: Content) -> None:
    """A state is a JSON object; its logs are lists cut out of it."""
    head, at = content.head, 0
    if not (head.startswith(b"{") and head.endswith(b"}")):
        raise DamagedFrame("its head is not a JSON object")
    for cut in content.cuts.values():
        if cut <= at or head[cut - 1 : cut + 1] != b"[]":
            raise DamagedFrame("its lists do not fit the positions in its header")
        at = cut


class Outline(NamedTuple):
    """The description of a state at the beginning of its payload.

    Args:
        head_bytes: The length of the state without the items of its lists.
        head: That text, if the beginning was long enough to contain it.
        lists: The names of its lists.
        marks: The marks of lists that differ from those of the row it builds on.
    """

    head_bytes: int
    head: bytes | None
    lists: Sequence[str]
    marks: Mapping[str, Mark]


def beginning_of(stored: bytes) -> Opened:
    """Return the beginning of a payload, which is not encrypted, from the first stored bytes. It is not verified.

    Raises:
        CorruptCheckpoint: It is too short.
    """
    return unverified(stored, "The beginning of a checkpoint's row")


def outline(beginning: Opened) -> Outline:
    """Read the beginning of a payload, for figures and charts.

    Args:
        beginning: The first bytes of a payload, 4,096 or more, or all of it; see `beginning_of`.

    Raises:
        CorruptCheckpoint: It is damaged, or its header is longer than the beginning.
    """
    try:
        body = memoryview(_FRAMING.beginning(beginning))
        header_length, head_bytes = _LENGTHS.unpack_from(body)
        head_at = _LENGTHS.size + header_length
        _, _, cuts, changes = _parse_header(decode_json(bytes(body[_LENGTHS.size : head_at])))
    except (DamagedFrame, struct.error, CorruptCheckpoint):
        raise CorruptCheckpoint("The beginning of a checkpoint's row cannot be read.") from None
    head = bytes(body[head_at : head_at + head_bytes])
    marks = {change.name: change.mark for change in changes}
    return Outline(head_bytes, head if len(head) == head_bytes else None, tuple(cuts), marks)


class Added(NamedTuple):
    """The items of a list that a row adds to the one it builds on.

    Args:
        start: The position of their text in the text of the list; 0 if the row has the whole list.
        text: Their JSON text, separated by commas; only its beginning if the row was read in part. Of a row with
            copies, the bytes after the last copy, which may begin within an item.
        whole: Whether the text is complete.
    """

    start: int
    text: bytes
    whole: bool


def added_items(beginning: Opened) -> Mapping[str, Added]:
    """Return the items that a row adds to lists, as far as its beginning contains them; see `outline`.

    Raises:
        CorruptCheckpoint: The row is damaged, or its header is longer than the beginning.
    """
    try:
        body = memoryview(_FRAMING.beginning(beginning))
        header_length, head_bytes = _LENGTHS.unpack_from(body)
        at = _LENGTHS.size + header_length
        _, _, _, changes = _parse_header(decode_json(bytes(body[_LENGTHS.size : at])))
    except (DamagedFrame, struct.error, CorruptCheckpoint):
        raise CorruptCheckpoint("The beginning of a checkpoint's row cannot be read.") from None
    at += head_bytes
    added = {}
    for change in changes:
        last = change.copies[-1].inserted if change.copies else change.length
        at += change.length
        text = bytes(body[at - last : at])
        added[change.name] = Added(change.mark.length - last, text, len(text) == last)
    return added


def whole_bytes(outlines: Sequence[Outline]) -> int:
    """Return the length of a state's text in bytes.

    Args:
        outlines: The outlines of its row and of those it builds on, newest first.
    """
    marks: dict[str, Mark] = {}
    for one in reversed(outlines):
        marks = {name: one.marks.get(name, marks.get(name, EMPTY)) for name in one.lists}
    return outlines[0].head_bytes + sum(mark.length for mark in marks.values())


#: Text common to small deltas: a header, the fields of a Locus `AgentState` and of its messages. Part of the
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


_FRAMING = Framing(
    DICTIONARY,
    range(256, 32_768),
    {stored: stored for stored in _COPYING_FORMATS} | {copying: stored for stored, copying in _COPYING_FORMATS.items()},
)
