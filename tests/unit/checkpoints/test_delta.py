"""Delta coding: what is put together is what was saved, from few rows, in little space."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_mysql.checkpoints.codec import decode_json, encode
from locus_mysql.checkpoints.delta import (
    WHOLE_BELOW_BYTES,
    Delta,
    Lineage,
    StoredRow,
    assemble,
    encode_delta,
    extend,
    lasting,
    rows_needed,
)
from locus_mysql.checkpoints.digests import HashedLogs, hash_logs
from locus_mysql.errors import CorruptCheckpoint

from .states import STATES, same

State = dict[str, Any]


@dataclass
class Table:
    """Rows of one thread in memory, as the database has them."""

    rows: dict[int, StoredRow] = field(default_factory=dict)
    bases: dict[int, int] = field(default_factory=dict)
    provisional: set[int] = field(default_factory=set)
    hashed: HashedLogs = field(default_factory=dict)

    def save(
        self, state: State, lineage: Lineage, *, provisional: bool = False, compression: Any = "zlib"
    ) -> tuple[Delta, Lineage]:
        encoded = encode(state)
        self.hashed = hash_logs(encoded, self.hashed)
        delta = encode_delta(encoded, self.hashed, lineage, provisional=provisional, compression=compression)
        seq = len(self.rows) + 1
        token = seq.to_bytes(16)
        self.rows[seq] = StoredRow(seq, token, delta.payload)
        self.bases[seq] = seq if delta.base is None else delta.base.seq
        if provisional:
            self.provisional.add(seq)
        return delta, extend(lineage, delta, seq, token, provisional=provisional)

    def chain(self, seq: int) -> list[StoredRow]:
        chain = [self.rows[seq]]
        while self.bases[chain[-1].seq] != chain[-1].seq:
            chain.append(self.rows[self.bases[chain[-1].seq]])
        return chain

    def load(self, seq: int) -> tuple[State, Lineage]:
        assembled, lineage = assemble(self.chain(seq))
        text = assembled.text()
        return decode_json(text), lineage

    @property
    def stored_bytes(self) -> int:
        return sum(len(row.payload) for row in self.rows.values())


def message(number: int, size: int = 400) -> dict[str, Any]:
    return {"role": "user", "content": f"message {number} " + "x" * size, "metadata": {}}


LISTS = st.sampled_from(["messages", "steps", "warnings"])
EDITS = st.one_of(
    st.tuples(st.just("append"), LISTS, st.integers(1, 3), st.sampled_from([1, 200, 900])),
    st.tuples(st.just("append"), LISTS, st.integers(1, 3), st.sampled_from([1, 200, 900])),
    st.tuples(st.just("change"), LISTS, st.integers(0, 30), st.just(0)),
    st.tuples(st.just("compact"), LISTS, st.integers(0, 5), st.just(0)),
    st.tuples(st.just("restart"), LISTS, st.just(0), st.just(0)),
    st.tuples(st.just("drop"), LISTS, st.just(0), st.just(0)),
    st.tuples(st.just("field"), st.sampled_from(["a", "messages"]), st.integers(), st.just(0)),
    st.tuples(st.just("reorder"), LISTS, st.just(0), st.just(0)),
    st.tuples(st.just("numbers"), LISTS, st.integers(0, 10**6), st.just(0)),
    st.tuples(st.just("nothing"), LISTS, st.just(0), st.just(0)),
)


def edited(state: State, edit: tuple[str, str, int, int], turn: int) -> State:
    """The state after one edit."""
    kind, name, number, size = edit
    state = copy.deepcopy(state)
    items = state.get(name)
    items = items if isinstance(items, list) else []
    if kind == "append":
        state[name] = items + [message(turn * 10 + place, size) for place in range(number)]
    elif kind == "change" and items:
        items[number % len(items)] = message(-turn)
        state[name] = items
    elif kind == "compact":
        state[name] = [message(-turn), *items[number:]]
    elif kind == "restart":
        state[name] = []
    elif kind == "drop":
        state.pop(name, None)
    elif kind == "field":
        state[name] = number
    elif kind == "reorder":
        state = dict(reversed(state.items()))
    elif kind == "numbers":
        state[name] = [*items, number]
    return state


@given(
    st.lists(st.tuples(EDITS, st.integers(0, 9), st.booleans(), st.integers(0, 5)), min_size=1, max_size=40),
    st.sampled_from(["zlib", "none"]),
)
@settings(max_examples=150, deadline=None)
def test_every_state_of_any_sequence_is_put_together_as_it_was(
    steps: list[tuple[tuple[str, str, int, int], int, bool, int]], compression: str
) -> None:
    table = Table()
    saved: list[State] = []
    states: dict[int, State] = {}
    lineages: dict[int, Lineage] = {}
    lineage: Lineage = ()
    state: State = {"a": 1, "messages": [message(number) for number in range(5)], "steps": []}
    for turn, (edit, choice, provisional, back) in enumerate(steps):
        if choice == 0 and states:  # go on from an earlier state, as read from the table
            seq = max(1, len(states) - back)
            state, lineage = table.load(seq)
        state = edited(state, edit, turn)
        _, lineage = table.save(state, lineage, provisional=provisional and choice > 6, compression=compression)
        saved.append(state)
        states[len(table.rows)], lineages[len(table.rows)] = copy.deepcopy(state), lineage
    for seq, expected in states.items():
        loaded, read = table.load(seq)
        assert same(loaded, expected)
        assert tuple(rows_needed(lineages[seq])) == read
        if seq not in table.provisional:
            assert read == lineages[seq]
            assert not any(row.seq in table.provisional for row in table.chain(seq))


@given(st.lists(STATES, min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_states_that_have_nothing_in_common_are_put_together_too(states: list[State]) -> None:
    table = Table()
    lineage: Lineage = ()
    stored = []
    for state in states:
        try:
            encode(state)
        except ValueError:
            continue
        _, lineage = table.save(state, lineage)
        stored.append(state)
    for seq, state in enumerate(stored, start=1):
        assert same(table.load(seq)[0], state)


def grown(turns: int) -> tuple[Table, list[Lineage], int]:
    """A conversation of 540 bytes a turn, and what whole states would take."""
    table, lineages, whole = Table(), [], 0
    state: State = {"run_id": "r", "messages": [], "iteration": 0}
    lineage: Lineage = ()
    for turn in range(turns):
        state["messages"].append(message(turn, 480))
        state["iteration"] = turn
        whole += encode(state).size_bytes
        _, lineage = table.save(state, lineage, compression="none")
        lineages.append(lineage)
    return table, lineages, whole


def test_a_thousand_turns_take_a_small_part_of_whole_states_and_load_from_few_rows() -> None:
    table, lineages, whole = grown(1_024)
    assert table.stored_bytes <= whole / 80
    for turn, lineage in enumerate(lineages, start=1):
        assert len(table.chain(turn)) <= math.log2(turn) + 1
        assert len(lineage) == len(table.chain(turn))
    assert len(table.load(1_024)[0]["messages"]) == 1_024


def test_a_log_that_starts_anew_does_not_make_the_others_be_stored_again() -> None:
    table, lineage = Table(), ()
    messages = [message(number) for number in range(50)]
    for turn in range(1, 8):
        state = {"messages": [*messages, *map(message, range(100, 100 + turn))], "steps": [message(-turn)], "kept": [1]}
        delta, lineage = table.save(state, lineage)
        assert same(table.load(turn)[0], state)
        if turn > 1:
            assert delta.base is not None
            assert len(delta.payload) < 6_000


def test_an_item_changed_in_place_is_noticed() -> None:
    table, lineage = Table(), ()
    state: State = {"messages": [message(number) for number in range(20)]}
    _, lineage = table.save(state, lineage)
    state["messages"][3]["content"] = state["messages"][3]["content"].replace("x", "y", 1)
    state["messages"].append(message(20))
    delta, lineage = table.save(state, lineage)
    assert delta.discontinued == {"messages"}
    assert table.load(2)[0] == state


def test_a_small_state_is_stored_whole() -> None:
    table, lineage = Table(), ()
    for turn in range(4):
        state = {"messages": ["x" * 100] * turn}
        assert encode(state).size_bytes <= WHOLE_BELOW_BYTES
        delta, lineage = table.save(state, lineage)
        assert delta.base is None


def test_what_continues_and_what_does_not_is_told_by_log() -> None:
    table, lineage = Table(), ()
    _, lineage = table.save({"a": [1, 2], "b": ["x"], "c": ["y"], "d": [], "e": ["gone"]}, lineage)
    delta, _ = table.save({"a": [1, 2, 3], "b": ["z"], "c": ["y"], "d": ["new"]}, lineage)
    assert delta.news == {"a": 2, "c": 1, "d": 0}
    assert delta.discontinued == {"b", "e"}
    assert delta.parent is not None
    assert delta.parent.seq == 1


class TestProvisional:
    def turns(self, turns: int, iterations: int) -> tuple[Table, list[int], Lineage]:
        """Turns as an agent saves them; the seqs of the lasting states."""
        table, finals = Table(), []
        state: State = {"messages": []}
        lineage: Lineage = ()
        for turn in range(turns):
            for iteration in range(iterations):
                state["messages"].append(message(turn * 100 + iteration))
                _, lineage = table.save(state, lineage, provisional=True)
            _, lineage = table.save(state, lineage)
            finals.append(len(table.rows))
        return table, finals, lineage

    def test_nothing_lasting_builds_on_a_provisional_state(self) -> None:
        table, finals, lineage = self.turns(40, 3)
        for seq in finals:
            assert not any(row.seq in table.provisional for row in table.chain(seq))
        assert lasting(lineage) == lineage

    def test_lasting_states_stay_few_rows_away_from_a_whole_one(self) -> None:
        table, finals, _ = self.turns(64, 3)
        for turn, seq in enumerate(finals, start=1):
            assert len(table.chain(seq)) <= math.log2(turn) + 1

    def test_provisional_states_build_on_each_other_and_on_the_newest_lasting_one(self) -> None:
        table, finals, lineage = self.turns(10, 0)
        state, _ = table.load(finals[-1])
        sizes = []
        for number in range(20):
            state["messages"].append(message(1_000 + number))
            delta, lineage = table.save(state, lineage, provisional=True)
            sizes.append(len(delta.payload))
            assert same(table.load(len(table.rows))[0], state)
        assert max(sizes) < 8 * 600
        assert lasting(lineage)[0].seq == finals[-1]

    def test_a_lasting_state_after_a_crash_goes_on_from_the_lasting_ones(self) -> None:
        table, finals, lineage = self.turns(8, 2)
        state, _ = table.load(finals[-1])
        state["messages"].append(message(5_000))
        _, lineage = table.save(state, lineage, provisional=True)
        state, lineage = table.load(len(table.rows))
        delta, _ = table.save(state, lineage)
        assert delta.parent is not None
        assert delta.parent.seq == finals[-1]
        assert delta.base is not None
        assert delta.base.seq in finals


class TestDamage:
    def rows(self) -> list[StoredRow]:
        table, _, _ = grown(63)
        return max((table.chain(seq) for seq in table.rows), key=len)

    def test_a_missing_row_is_noticed(self) -> None:
        rows = self.rows()
        with pytest.raises(CorruptCheckpoint):
            assemble([rows[0], *rows[2:]])
        with pytest.raises(CorruptCheckpoint):
            assemble(rows[:-1])

    @given(st.data())
    @settings(max_examples=60, deadline=None)
    def test_damaged_bytes_are_an_error_of_ours_or_give_other_text(self, data: st.DataObject) -> None:
        rows = self.rows()
        which = data.draw(st.integers(0, len(rows) - 1))
        payload = bytearray(rows[which].payload)
        place = data.draw(st.integers(0, len(payload) - 1))
        payload[place] ^= data.draw(st.integers(1, 255))
        rows[which] = StoredRow(rows[which].seq, rows[which].token, bytes(payload))
        try:
            text = assemble(rows)[0].text()
        except CorruptCheckpoint:
            return
        assert isinstance(text, bytes)

    def test_a_format_of_a_later_version_is_named(self) -> None:
        with pytest.raises(CorruptCheckpoint, match="upgrade"):
            assemble([StoredRow(1, b"", b"\x09whatever")])


def test_the_text_is_compact_json() -> None:
    table = Table()
    table.save({"b": [1, {"c": "ä"}], "a": None}, ())
    text = assemble(table.chain(1))[0].text()
    assert text.decode() == json.dumps({"b": [1, {"c": "ä"}], "a": None}, separators=(",", ":"), ensure_ascii=False)
