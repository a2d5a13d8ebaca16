"""Delta coding restores saved states exactly, from few rows and in little space."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from locus_mysql.families.checkpoints.coding.codec import encode, hash_logs
from locus_mysql.families.checkpoints.coding.delta import (
    REWRITING_ROWS,
    Held,
    Lineage,
    NotHeld,
    rows_needed,
)

from .....thoroughness import FULL
from ..states import same, stored_bytes
from .stored_rows import State, Table, message

LISTS = st.sampled_from(["messages", "steps", "warnings"])
EDITS = st.one_of(
    st.tuples(st.just("append"), LISTS, st.integers(1, 3), st.sampled_from([1, 200, 900])),
    st.tuples(st.just("append"), LISTS, st.integers(1, 3), st.sampled_from([1, 200, 900])),
    st.tuples(st.just("change"), LISTS, st.integers(0, 30), st.just(0)),
    st.tuples(st.just("compact"), LISTS, st.integers(0, 5), st.just(0)),
    st.tuples(st.just("slide"), LISTS, st.integers(1, 3), st.sampled_from([200, 900])),
    st.tuples(st.just("fill"), LISTS, st.integers(8, 12), st.sampled_from([400, 900])),
    st.tuples(st.just("restart"), LISTS, st.just(0), st.just(0)),
    st.tuples(st.just("drop"), LISTS, st.just(0), st.just(0)),
    st.tuples(st.just("field"), st.sampled_from(["a", "messages"]), st.integers(), st.just(0)),
    st.tuples(st.just("reorder"), LISTS, st.just(0), st.just(0)),
    st.tuples(st.just("numbers"), LISTS, st.integers(0, 10**6), st.just(0)),
    st.tuples(st.just("nothing"), LISTS, st.just(0), st.just(0)),
)


def edited(state: State, edit: tuple[str, str, int, int], turn: int) -> State:
    """Return the state after one edit."""
    kind, name, number, size = edit
    state = copy.deepcopy(state)
    items = state.get(name)
    items = items if isinstance(items, list) else []
    if kind == "append":
        state[name] = items + [message(turn * 10 + index, size) for index in range(number)]
    elif kind == "change" and items:
        items[number % len(items)] = message(-turn)
        state[name] = items
    elif kind == "compact":
        state[name] = [message(-turn), *items[number:]]
    elif kind == "slide":
        state[name] = [*items[number:], *(message(turn * 10 + index, size) for index in range(number))]
    elif kind == "fill":
        state[name] = [message(turn * 100 + index, size) for index in range(number)]
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
@settings(max_examples=400 if FULL else 60)
def test_every_state_of_any_sequence_is_restored_exactly(
    steps: list[tuple[tuple[str, str, int, int], int, bool, int]], compression: str
) -> None:
    table = Table()
    saved: list[State] = []
    states: dict[int, State] = {}
    lineages: dict[int, Lineage] = {}
    lineage: Lineage = ()
    state: State = {"a": 1, "messages": [message(number) for number in range(5)], "steps": []}
    for turn, (edit, choice, provisional, back) in enumerate(steps):
        if choice == 0 and states:  # continue from an earlier state, as read from the table
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
    for seq, other in [*pairwise(states), *pairwise(reversed(states)), *((seq, seq) for seq in states)]:
        encoded = encode(states[seq])
        try:
            loaded, read = table.load_with(other, Held(lineages[seq], hash_logs(encoded, {}), encoded))
        except NotHeld:
            continue
        assert same(loaded, states[other])
        assert tuple(rows_needed(read)) == tuple(rows_needed(lineages[other]))


def grown(turns: int) -> tuple[Table, list[Lineage], int]:
    """Save a conversation of 540 bytes a turn; also return the size of whole states."""
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


def test_a_restarted_log_does_not_store_the_others_again() -> None:
    table, lineage = Table(), ()
    messages = [message(number) for number in range(50)]
    for turn in range(1, 8):
        state = {"messages": [*messages, *map(message, range(100, 100 + turn))], "steps": [message(-turn)], "kept": [1]}
        delta, lineage = table.save(state, lineage)
        assert same(table.load(turn)[0], state)
        if turn > 1:
            assert delta.base is not None
            assert len(stored_bytes(delta)) < 6_000


class TestCopies:
    """States that do not continue their parent, but have most of its items."""

    @staticmethod
    def windows(turns: int, *, holds: bool = True) -> tuple[Table, list[State], list[Lineage]]:
        """Save a conversation of which the newest 40 messages are kept."""
        table, lineage, states, lineages = Table(holds=holds), (), [], []
        for turn in range(turns):
            states.append({"messages": [message(number) for number in range(turn, turn + 40)], "turn": turn})
            _, lineage = table.save(states[-1], lineage, compression="none")
            lineages.append(lineage)
        return table, states, lineages

    def test_a_window_of_a_conversation_takes_a_fraction_of_whole_states_and_loads_from_few_rows(self) -> None:
        table, states, _ = self.windows(60)
        for seq, state in enumerate(states, start=1):
            assert same(table.load(seq)[0], state)
            assert len(table.chain(seq)) <= REWRITING_ROWS
        assert table.stored_bytes < sum(encode(state).size_bytes for state in states) / 4


class TestProvisional:
    def turns(self, turns: int, iterations: int) -> tuple[Table, list[int], Lineage]:
        """Save turns like an agent; return the seqs of the lasting states."""
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

    def test_lasting_states_stay_few_rows_away_from_a_whole_one(self) -> None:
        table, finals, _ = self.turns(64, 3)
        for turn, seq in enumerate(finals, start=1):
            assert len(table.chain(seq)) <= math.log2(turn) + 1
