"""Bytes come back from states exactly, whatever they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.records import decode_state_text
from locus_mysql.integrations.strands.storage import STYLES, bytes_of, state_of

#: Texts that may hold any character, also halves of surrogate pairs.
TEXTS = st.text(st.characters(codec=None), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
SNAPSHOTS = st.builds(
    lambda messages, more: {"data": {**more, "messages": messages, "z": more}},
    st.lists(JSON),
    JSON.filter(lambda one: isinstance(one, dict)) | st.just({}),
)


def returned(data: bytes) -> bytes:
    return bytes_of(decode_state_text(state_of(data).text(), "k"), "k")


@given(st.binary() | st.text().map(str.encode))
@example(b'{"a": 1, "a": 2}')
@example(b'{"a": 1e400, "b": -0.0, "c": 1E5, "d": 1.0}')
@example(b"[" * 5_000)
@example(b"\xef\xbb\xbf{}")
def test_any_bytes_come_back(data: bytes) -> None:
    assert returned(data) == data


@given(JSON | SNAPSHOTS, st.sampled_from([*STYLES.values(), {"separators": (" ,", ": ")}, {"sort_keys": True}]))
def test_json_of_any_style_comes_back(value: Any, style: dict[str, Any]) -> None:
    data = json.dumps(value, **style).encode(errors="surrogatepass")
    assert returned(data) == data


def test_the_messages_of_a_snapshot_are_a_list_of_their_own() -> None:
    snapshot = {"scope": "agent", "data": {"messages": [{"role": "user"}], "state": {}}, "app_data": {}}
    for style, options in STYLES.items():
        state = decode_state_text(state_of(json.dumps(snapshot, **options).encode()).text(), "k")
        assert state["json"] == style or options == {}  # without other characters, escaped is spaced
        assert state["messages"] == [{"role": "user"}]


@pytest.mark.parametrize("state", [{}, {"a": 1}, {"base64": "?"}, {"json": "new", "value": 1}, {"json": "spaced"}])
def test_a_state_of_another_program_is_refused(state: dict[str, Any]) -> None:
    with pytest.raises(CorruptCheckpoint, match="not written by StrandsStorage"):
        bytes_of(state, "k")
