"""Items as lines of JSON: exact in both directions, and damage is detected."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.errors import CorruptCheckpoint, InvalidInput
from locus_mysql.families.memories.arguments import encode_value
from locus_mysql.families.memories.lines import default_text, head_line, item_line, item_of_content
from locus_mysql.families.memories.moving import KeptItem, KeptVector
from locus_mysql.families.memories.namespaces import encoded_key, path_of
from locus_mysql.families.memories.statements.moving import KeptRow
from locus_mysql.runtime.checksummed_jsonl import End, Head, content_of, end_line


def parse_line(line: bytes, number: int) -> Head | KeptItem | End:
    """Parse a line like an import."""
    try:
        content = content_of(line, number)
        return item_of_content(content) if isinstance(content, dict) else content
    except InvalidInput as error:
        raise InvalidInput(f"Line {number}: {error}") from None


TIME = "2026-01-31 12:00:00.000001"
LABELS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=5)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), inner, max_size=3)
    ),
    max_leaves=8,
)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def items(draw: st.DrawFn) -> KeptItem:
    value = draw(VALUES)
    text = draw(
        st.just(default_text(value)) | st.none() | st.text(st.characters(exclude_categories=("Cs",)), min_size=1)
    )
    vectors = draw(st.lists(st.tuples(st.none() | st.binary(min_size=16, max_size=16), st.lists(FLOATS, min_size=1))))
    row = KeptRow(
        path_of(draw(st.lists(LABELS, min_size=1, max_size=3))),
        encoded_key(draw(LABELS)),
        encode_value(value),
        draw(st.none() | st.just('{"m":[1,"é"]}')),
        draw(st.integers(1, 2**63 - 1)),
        draw(st.none() | st.integers(1, 2**50)),
        text,
        TIME,
        "2026-02-01 00:00:00.000000",
        draw(st.none() | st.just("2126-01-31 12:00:00.000000")),
        draw(st.none() | st.just("[]") | st.just('["a.b","ä"]')),
    )
    models = st.integers(0, 2**32 - 1)
    kept = [KeptVector(digest, struct.pack(f"<{len(one)}f", *one), draw(models)) for digest, one in vectors]
    return KeptItem(row, tuple(kept))


def item(**changed: Any) -> dict[str, Any]:
    content = {"namespace": ["u"], "key": "k", "value": 1, "version": 1, "created_at": f"{TIME}Z"}
    content |= {"updated_at": f"{TIME}Z", **changed}
    return {name: value for name, value in content.items() if value is not ...}


def by_hand(content: Any) -> bytes:
    return json.dumps(content).encode() + b"\n"


@given(items())
def test_a_line_is_read_as_it_was_written(kept: KeptItem) -> None:
    line = item_line(kept)
    assert line.count(b"\n") == 1
    assert parse_line(line, 2) == kept


@given(items(), st.data())
def test_no_changed_byte_goes_unnoticed(kept: KeptItem, data: st.DataObject) -> None:
    line = bytearray(item_line(kept))
    index = data.draw(st.integers(0, len(line) - 1))
    line[index] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InvalidInput, match=r"^Line 7: "):
        parse_line(bytes(line), 7)


@given(items(), st.data())
def test_no_cut_line_goes_unnoticed(kept: KeptItem, data: st.DataObject) -> None:
    line = item_line(kept)
    with pytest.raises(InvalidInput, match="cut off"):
        parse_line(line[: data.draw(st.integers(0, len(line) - 1))], 7)


def test_the_first_and_the_last_line_are_marked() -> None:
    head = parse_line(head_line("acme", ("users", "ada")), 1)
    assert isinstance(head, Head)
    assert (head.content["tenant"], head.content["namespace"]) == ("acme", ["users", "ada"])
    assert parse_line(end_line(7), 9) == End(7)
    with pytest.raises(InvalidInput, match="Line 1: The file is no export"):
        parse_line(end_line(7), 1)


def test_lines_may_be_written_by_hand() -> None:
    found = parse_line(by_hand(item(value={"a": "b"}, created_at="2026-01-31T13:00:00.000001+01:00")), 2)
    assert isinstance(found, KeptItem)
    assert (found.row.created_at, found.row.text, found.vectors) == (TIME, "b", ())


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (item(namespace=[]), "Namespace is empty"),
        (item(namespace="users"), "must be a tuple of texts"),
        (item(namespace=["a\0b"]), "NUL"),
        (item(key=""), "Key is empty"),
        (item(key=7), "Key must be text"),
        (item(key=...), "lacks the field 'key'"),
        (item(value=...), "lacks the field 'value'"),
        (item(value=2**2000), "more than 1023 bits"),
        (item(metadata=[1]), "Metadata must be a dict"),
        (item(version=0), "version must be"),
        (item(version=True), "version must be"),
        (item(ttl_us=3_155_760_000_000_001), "ttl_us must be"),  # a refresh would exceed MySQL's latest time
        (item(version=2**63), "version must be"),
        (item(ttl_us=-1), "ttl_us must be"),
        (item(text=7), "must be text"),
        (item(created_at="yesterday"), "created_at must be a time"),
        (item(created_at=TIME), "created_at must be a time with its zone"),
        (item(updated_at=None), "updated_at must be a time"),
        (item(expires_at="0001-01-01T00:00:00+23:00"), "expires_at must be a time"),
        (item(embeddings=[1]), "cannot be read"),
        (item(embeddings=[{"float32": "####"}]), "cannot be read"),
        (item(embeddings=[{"float32": "AAAA"}]), "its bytes are not those"),
        (item(embeddings=[{"float32": "AACAPw==", "digest": "00"}]), "must be 16 bytes"),
        (item(embeddings=[{"float32": "AADAfw=="}]), "NaN"),
        (item(embeddings=[{"float32": "AACAPw==", "model": 2**32}]), "a whole number of 32 bits"),
        (item(index="a"), "index must be a list of paths"),
        (item(embeddings={}), "must be a list"),
        (item(surprise=1), "no field 'surprise'"),
        ({"end": {}}, "does not say how many"),
        ([], "no JSON object"),
    ],
)
def test_a_line_that_cannot_be_stored_is_refused_with_its_number(content: Any, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^Line 3: .*{complaint}"):
        parse_line(by_hand(content), 3)


@pytest.mark.parametrize("line", [b"\n", b"null\n", b"\xff\n", b"{\n", b'{"value": NaN}\n', b"[" * 100_000 + b"\n"])
def test_a_line_that_is_not_json_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"^Line 3: It is"):
        parse_line(line, 3)


def test_a_checksum_covers_everything_before_it() -> None:
    body = b'{"end":{"items":1}'
    sealed = body + b',"crc32":"%08x"}\n' % zlib.crc32(body)
    assert sealed == end_line(1)
    with pytest.raises(InvalidInput, match="checksum"):
        parse_line(sealed.replace(b"1}", b"2}", 1), 3)


def test_an_item_that_is_no_json_is_named() -> None:
    damaged = KeptItem(KeptRow(b"u\0", b"k", "{", None, 1, None, None, TIME, TIME, None))
    with pytest.raises(CorruptCheckpoint, match="Item 'k' in"):
        item_line(damaged)
