"""Chains of parts restore any history of values, from few parts and in little space."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from locus_mysql.families.graphs.decoding import Parts
from locus_mysql.families.graphs.payload import part_identity, seal, stored_thread
from locus_mysql.families.graphs.values import Body, EncodedValue, Stored, Value, store
from locus_mysql.runtime.sealing import Sealing


class Shelf:
    """Stores a sequence of values."""

    def __init__(self) -> None:
        self.parts = Parts(part_identity(stored_thread("tenant", "t", Sealing(None, "graphs"))))
        self.values: list[tuple[EncodedValue, Value]] = []
        self.stored_bytes = 0
        self.body: Body | None = None

    def put(self, encoded: EncodedValue, *, body_at_hand: bool = True) -> Value:
        before = self.values[-1][1] if self.values else None
        new = store(encoded, before, self.body if body_at_hand else None, 5_000 + len(self.parts.sealed))
        if new.chunk is not None:
            self.parts.sealed[5_000 + len(self.parts.sealed)] = seal(new.chunk, "none", self.parts.identity)
            self.stored_bytes += len(new.chunk)
        self.body = new.body
        self.values.append((encoded, new.value))
        return new.value

    def assert_sound(self) -> None:
        for encoded, value in self.values:
            assert self.parts.encoded(value) == encoded


def as_json(value: Any) -> EncodedValue:
    return EncodedValue("json", json.dumps(value).encode())


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(1, 600)),
        st.tuples(st.just("shrink"), st.integers(1, 3)),
        st.tuples(st.just("replace last"), st.integers(1, 600)),
        st.tuples(st.just("replace first"), st.integers(1, 600)),
        st.tuples(st.just("again"), st.just(0)),
        st.tuples(st.just("anew"), st.integers(1, 2000)),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(CHANGES, st.lists(st.booleans(), min_size=60, max_size=60))
def test_any_history_of_a_list_can_be_read_back_at_each_step(
    changes: list[tuple[str, int]], at_hand: list[bool]
) -> None:
    shelf = Shelf()
    items: list[str] = []
    for (change, size), has_body in zip(changes, at_hand, strict=False):
        text = f"{len(shelf.values)}:" + "x" * size
        match change:
            case "grow":
                items.append(text)
            case "shrink":
                del items[-size:]
            case "replace last":
                items[-1:] = [text]
            case "replace first":
                items[:1] = [text]
            case "anew":
                items = [text]
        shelf.put(as_json(items), body_at_hand=has_body)
    shelf.assert_sound()


def test_a_list_that_grows_takes_few_parts_to_read_and_little_space() -> None:
    shelf = Shelf()
    items: list[str] = []
    for turn in range(1_024):
        items.append(f"{turn:05}" * 100)
        shelf.put(as_json(items))
    shelf.assert_sound()
    whole_bytes = len(shelf.values[-1][0].data)
    longest = max(len(value.chain) for _, value in shelf.values if isinstance(value, Stored))
    assert longest <= 11
    assert shelf.stored_bytes < 7 * whole_bytes


def test_a_last_item_that_changes_each_time_does_not_make_the_others_be_stored_again() -> None:
    shelf = Shelf()
    shelf.put(as_json(["x" * 100_000, "first"]))
    for turn in range(50):
        shelf.put(as_json(["x" * 100_000, *(["y" * 500] * turn), f"last {turn}"]))
    shelf.assert_sound()
    assert shelf.stored_bytes < 500_000
