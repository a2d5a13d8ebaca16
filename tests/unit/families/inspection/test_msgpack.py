"""Values that graphs store are decoded to plain values; nothing is imported, constructed or called."""

from __future__ import annotations

import dataclasses
import decimal
import json
import pathlib
import sys
import uuid
from collections import deque
from datetime import UTC, date, datetime, timedelta
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Send
from pydantic import BaseModel, SecretStr

from locus_mysql.families.graphs.inspection.graph_state import to_json
from locus_mysql.families.graphs.values import EncodedValue
from locus_mysql.families.inspection.msgpack import DEPTH_LIMIT, TYPE, Unreadable, metadata_of, read_msgpack

SERDE = JsonPlusSerializer()

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


class Plan(BaseModel):
    goal: str
    steps: list[str]


@dataclasses.dataclass
class Note:
    text: str
    at: datetime


def decoded(value: Any) -> Any:
    """Return the plain form of a value that a graph stored."""
    return to_json(EncodedValue(*SERDE.dumps_typed(value)))


@given(JSON)
def test_json_values_are_read_back_unchanged(value: Any) -> None:
    assert read_msgpack(ormsgpack.packb(value)) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (decimal.Decimal("1.50"), "1.50"),
        (datetime(2026, 11, 22, 3, 12, tzinfo=UTC), "2026-11-22T03:12:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (pathlib.Path("/a/b"), "/a/b"),
        ({1}, [1]),
        (deque([1, 2]), [1, 2]),
        (b"abc", "<bytes, 3 bytes>"),
        ([b"a"], ["<bytes, 1 byte>"]),
        ({1: "int", None: "none", False: "bool"}, {"1": "int", "null": "none", "false": "bool"}),
        ({"1": "a", 1: "b"}, {"1": "a", "1 (int)": "b"}),
        ([float("nan"), float("-inf")], ["nan", "-inf"]),
        (SecretStr("hunter2"), "**********"),
        (timedelta(1, 2), {TYPE: "datetime.timedelta", "args": [1, 2, 0]}),
        (Send("node", {"a": 1}), {TYPE: "langgraph.types.Send", "args": ["node", {"a": 1}]}),
        (Plan(goal="g", steps=["s"]), {TYPE: f"{__name__}.Plan", "goal": "g", "steps": ["s"]}),
        (Note("n", datetime(2026, 1, 1)), {TYPE: f"{__name__}.Note", "text": "n", "at": "2026-01-01T00:00:00"}),
        (None, None),
    ],
)
def test_objects_are_shown_as_their_content(value: Any, shown: Any) -> None:
    assert decoded(value) == shown
    json.dumps(decoded(value), allow_nan=False)


@pytest.mark.parametrize("code", range(8))
def test_nothing_that_bytes_name_is_imported_or_called(code: int, tmp_path: pathlib.Path) -> None:
    trace = tmp_path / "called"
    for arguments in (f"touch {trace}", [f"touch {trace}"], {"command": f"touch {trace}"}):
        inner = ormsgpack.packb(["os", "system", arguments, "__call__"])
        read_msgpack(ormsgpack.packb(ormsgpack.Ext(code, inner)))
        read_msgpack(ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(["antigravity", "fly", arguments, "x"]))))
    assert not trace.exists()
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("kind", ["pickle", "msgpack+aes", "json+x", "", "x" * 500])
def test_other_encodings_are_shown_by_name_only(kind: str) -> None:
    shown = to_json(EncodedValue(kind, b"cos\nsystem\n(S'false'\ntR."))
    assert isinstance(shown, str)
    assert shown.endswith("24 bytes>")
    assert len(shown) < 100


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_read_or_refused(data: bytes) -> None:
    try:
        json.dumps(read_msgpack(data), allow_nan=False)
    except Unreadable:
        assert (
            to_json(EncodedValue("msgpack", data))
            == f"<damaged msgpack, {len(data):,} byte{'' if len(data) == 1 else 's'}>"
        )


@pytest.mark.parametrize(
    "data",
    [
        b"\xdd\xff\xff\xff\xff",  # an array of four billion
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xffabc",
        b"\xc9\xff\xff\xff\xff\x05",
        b"\x91" * 100_000,
        b"\x81\xa1a" * 100_000,
        b"\xc1",
        b"",
        b"\x01\x02",
    ],
)
def test_hostile_bytes_are_refused_at_once(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read_msgpack(data)


def test_objects_within_objects_are_read_to_a_depth() -> None:
    def nested(depth: int) -> bytes:
        data = ormsgpack.packb(["m", "N", 1])
        for _ in range(depth):
            data = ormsgpack.packb(["m", "N", ormsgpack.Ext(0, data)])
        return ormsgpack.packb(ormsgpack.Ext(0, data))

    read_msgpack(nested(DEPTH_LIMIT // 2 - 2))
    with pytest.raises(Unreadable):
        read_msgpack(nested(DEPTH_LIMIT))


def test_the_same_key_many_times_over_takes_no_longer() -> None:
    count = 50_000
    data = b"\xdf" + count.to_bytes(4, "big") + b"\xa1a\x01" * count
    assert read_msgpack(data) == {"a": 1}
    numbers = b"\xdf" + count.to_bytes(4, "big") + b"\x05\x01" * count
    assert len(read_msgpack(numbers)) <= 2


@pytest.mark.parametrize("text", ["{", "[1]", "3", "\ud800", "[" * 100_000])
def test_damaged_metadata_is_marked_as_damaged(text: str) -> None:
    metadata, damage = metadata_of(text)
    assert metadata == {}
    assert damage is not None


def test_metadata_is_json() -> None:
    assert metadata_of(None) == ({}, None)
    assert metadata_of('{"a": NaN}') == ({"a": "nan"}, None)
