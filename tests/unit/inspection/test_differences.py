"""Differences between two states."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from locus.core.state import AgentState

from locus_mysql.families.inspection.conversation import messages_of
from locus_mysql.families.inspection.records import CheckpointRow, Difference, StateView
from locus_mysql.inspection import differences
from locus_mysql.inspection.alignment import Keys, common, key_of, pairs
from locus_mysql.inspection.differences import (
    FIELDS_LIMIT,
    LONGEST,
    SETS,
    VALUES_LIMIT,
    Piece,
    difference,
    text_changes,
)
from tests.growth import assert_linear, steps_of
from tests.unit.families.inspection.test_conversation import JSON

ROW = CheckpointRow("", "c", None, datetime(2026, 1, 1, tzinfo=UTC), 1)


def view(state: dict[str, Any]) -> StateView:
    """Return the inspector's view of a state."""
    return StateView("agents", "t", ROW, messages_of(state), state)


def between(before: dict[str, Any], after: dict[str, Any]) -> Difference:
    """Return the difference of two states."""
    return difference(view(before), view(after))


def messages(*texts: str) -> list[dict[str, Any]]:
    """Return messages with these texts."""
    return [{"role": "user", "content": text} for text in texts]


def changes(found: Difference) -> list[tuple[str, str | None, str | None]]:
    """Return the changes of messages, each as kind and texts."""
    return [
        (one.change, None if one.before is None else one.before.text, None if one.after is None else one.after.text)
        for one in found.messages
    ]


def fields(before: Any, after: Any) -> list[tuple[str, str, Any, Any]]:
    """Return the changes of a field of two states as tuples, with their paths within it."""
    found = between({"v": before}, {"v": after}).fields
    return [(one.path[1:].lstrip("."), one.change, one.before, one.after) for one in found]


def test_appended_messages_are_added() -> None:
    found = between({"messages": messages("a", "b")}, {"messages": messages("a", "b", "c")})
    assert changes(found) == [("same", "a", "a"), ("same", "b", "b"), ("added", None, "c")]
    assert found.fields == []


def test_a_message_edited_in_the_middle_is_changed() -> None:
    before = messages("first", "the weather is fine today", "last")
    found = between({"messages": before}, {"messages": messages("first", "the weather is bad today", "last")})
    assert [one[0] for one in changes(found)] == ["same", "changed", "same"]


def test_another_message_in_its_place_is_removed_and_added() -> None:
    found = between(
        {"messages": messages("a", "one two three", "z")}, {"messages": messages("a", "something else", "z")}
    )
    assert [one[0] for one in changes(found)] == ["same", "removed", "added", "same"]


def test_a_compaction_that_drops_the_beginning_removes_it_and_adds_the_summary() -> None:
    texts = [f"message number {number} of many" for number in range(100)]
    system = {"role": "system", "content": "Be brief."}
    summary = {"role": "system", "content": "Summary: they talked."}
    before = {"messages": [system, *messages(*texts)]}
    found = between(before, {"messages": [system, summary, *messages(*texts[80:]), *messages("new")]})
    counted = {change: sum(one[0] == change for one in changes(found)) for change in ("same", "removed", "added")}
    assert counted == {"same": 21, "removed": 80, "added": 2}
    assert changes(found)[-1] == ("added", None, "new")


def test_a_message_with_the_same_id_is_changed_whatever_its_text() -> None:
    before = {"messages": [{"type": "ai", "id": "m", "content": "thinking"}]}
    found = between(before, {"messages": [{"type": "ai", "id": "m", "content": "The answer is 42."}]})
    assert changes(found) == [("changed", "thinking", "The answer is 42.")]


def test_changed_fields_have_their_paths() -> None:
    before = {"goal": "x", "metadata": {"a": 1, "odd key": 2}, "steps": [{"id": 1, "done": False, "of": 3}], "old": 1}
    after = {"goal": "y", "metadata": {"a": 1, "odd key": 3}, "steps": [{"id": 1, "done": True, "of": 3}], "new": [2]}
    assert fields(before, after) == [
        ("goal", "changed", "x", "y"),
        ('metadata["odd key"]', "changed", 2, 3),
        ("steps[0].done", "changed", False, True),
        ("old", "removed", 1, None),
        ("new", "added", None, [2]),
    ]


def test_changed_items_of_a_list_have_their_index() -> None:
    assert fields({"l": [1, 2, 3]}, {"l": [1, 3, 4]}) == [("l[1]", "removed", 2, None), ("l[2]", "added", None, 4)]
    assert fields({"l": [0.5]}, {"l": [0.5, 0.7]}) == [("l[1]", "added", None, 0.7)]


def test_true_1_and_1_0_are_different() -> None:
    assert fields({"a": 1, "b": 1}, {"a": True, "b": 1.0}) == [("a", "changed", 1, True), ("b", "changed", 1, 1.0)]


def test_the_conversation_is_not_repeated_among_the_fields() -> None:
    before = {"channel_values": {"messages": messages("a"), "count": 1}}
    found = between(before, {"channel_values": {"messages": messages("a", "b"), "count": 2}})
    assert [one.path for one in found.fields] == ["channel_values.count"]


def test_only_the_first_of_very_many_changes_are_listed() -> None:
    size = FIELDS_LIMIT + 1
    found = between({str(n): 0 for n in range(size)}, {str(n): 1 for n in range(size)})
    assert (len(found.fields), found.cut) == (FIELDS_LIMIT, True)
    found = between({str(n): 0 for n in range(size - 1)}, {str(n): 1 for n in range(size - 1)})
    assert (len(found.fields), found.cut) == (FIELDS_LIMIT, False)


KEYS = st.lists(st.sampled_from("abcdefgh"), max_size=30)


@given(KEYS, KEYS)
def test_common_items_are_equal_and_ascend_in_both_lists(before: list[str], after: list[str]) -> None:
    found = common(before, after)
    assert all(before[index] == after[other] for index, other in found)
    assert found == sorted(set(found))
    assert [other for _, other in found] == sorted({other for _, other in found})


@given(KEYS, KEYS, st.booleans())
def test_every_item_of_both_lists_appears_once_and_in_order(before: list[str], after: list[str], pair: bool) -> None:
    found = list(pairs(before, after, lambda index, other: pair))
    assert [index for index, _ in found if index is not None] == list(range(len(before)))
    assert [other for _, other in found if other is not None] == list(range(len(after)))


@given(JSON, JSON)
def test_only_differences_are_listed(before: Any, after: Any) -> None:
    assert (fields(before, after) == []) == (key_of(before) == key_of(after))
    assert fields(before, before) == []


@given(st.lists(JSON, max_size=6), st.lists(JSON, max_size=6))
def test_messages_of_any_form_can_be_compared(before: list[Any], after: list[Any]) -> None:
    one, other = (messages_of({"messages": [*messages("hi"), *those]}) for those in (before, after))
    changes = between({"messages": [*messages("hi"), *before]}, {"messages": [*messages("hi"), *after]}).messages
    assert [change.before for change in changes if change.before] == list(one)
    assert [change.after for change in changes if change.after] == list(other)


def test_the_sets_of_locus_have_no_order() -> None:
    before = {"messages": messages("a"), "terminal_tools": ["done", "submit", "finish"], "list": [1, 2]}
    after = {"messages": messages("a"), "terminal_tools": ["submit", "finish", "done"], "list": [2, 1]}
    assert {change.path.partition("[")[0] for change in between(before, after).fields} == {"list"}
    more = between(before, {**after, "list": [1, 2], "terminal_tools": ["submit", "stop", "finish", "done"]}).fields
    assert [(change.change, change.after) for change in more] == [("added", "stop")]


def test_the_sets_of_locus_are_its_sets() -> None:
    fields = AgentState.model_fields
    assert sorted(SETS) == sorted(name for name in fields if "set[" in str(fields[name].annotation))


CHANGED = {
    "nothing in common": lambda n: ([{"a": i} for i in range(n)], [{"a": -1 - i} for i in range(n)]),
    "half in common": lambda n: ([{"a": i, "b": i, "c": i} for i in range(n)], [{"a": i, "b": -i} for i in range(n)]),
    "repeated": lambda n: (["a", "b", "c"] * n, ["c", "a"] * n),
    "repeated between anchors": lambda n: (
        [one for i in range(n) for one in (f"x{i}", *"abab" * 3)],
        [one for i in range(n) for one in (f"x{i}", *"baab" * 3)],
    ),
    "deep": lambda n: ({"a": {"b": {"c": {"d": list(range(n))}}}}, {"a": {"b": {"c": {"d": list(range(1, n))}}}}),
    "deep lists": lambda n: ([[[[[i]]]] for i in range(n)], [[[[[i + 1]]]] for i in range(n)]),
}


@pytest.mark.parametrize("made", CHANGED.values(), ids=CHANGED)
def test_comparing_takes_time_linear_in_both_states(made: Any) -> None:
    def compared(size: int) -> None:
        before, after = made(size)
        fields(before, after)
        between(
            {"messages": messages(*map(str, range(size)))}, {"messages": messages(*(f"{n} x" for n in range(size)))}
        )

    assert_linear(lambda size: steps_of(compared, size), 30)


LARGE = {
    "many lists": lambda n: {"x": [[] for _ in range(n)]},
    "many numbers": lambda n: {"x": [7 * i % 10 for i in range(n)]},
    "many objects": lambda n: {"x": [{"a": i, str(n): 1} for i in range(n)]},
    "many fields": lambda n: {f"{n} {i}": i for i in range(n)},
    "deep": lambda n: {"x": [[[[[i, n]]]] for i in range(n)]},
    "many long lists": lambda n: {str(i): [*range(99), n] for i in range(n // 50)},
}


@pytest.mark.parametrize("made", LARGE.values(), ids=LARGE)
def test_the_steps_of_a_comparison_of_any_two_states_are_bounded(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 4_000
    monkeypatch.setattr(differences, "VALUES_LIMIT", limit)
    monkeypatch.setattr(differences, "COARSE_ITEMS", limit // 2)
    one, other, larger = (made(limit * times + times) for times in (1, 2, 4))
    between_views = [(view(one), view(other)), (view(other), view(larger))]
    small, large = (steps_of(lambda pair=pair: difference(*pair)) for pair in between_views)
    assert large <= 1.5 * small + limit
    found = difference(*between_views[0])
    assert found.coarse
    assert len(found.fields) >= 1


def test_large_states_are_compared_by_their_upper_levels_truly() -> None:
    large = list(range(VALUES_LIMIT))
    before = {"goal": "x", "data": {"large": large, "more": large}, "deep": {"a": {"b": {"c": {"d": 1, "e": 2}}}}}
    after = {
        "goal": "y",
        "data": {"large": [*large, 1], "more": [*large]},
        "deep": {"a": {"b": {"c": {"e": 2, "d": 2}}}},
    }
    found = between(before, after)
    assert [(one.path, one.change) for one in found.fields] == [
        ("goal", "changed"),
        ("data.large", "changed"),
        ("deep.a.b", "changed"),
    ]
    assert found.coarse
    reordered = {**before, "deep": {"a": {"b": {"c": {"e": 2, "d": 1}}}}}
    same = between(before, reordered)
    assert (same.fields, same.coarse) == ([], False)


def test_conversations_of_very_many_messages_are_compared_like_other_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "MESSAGES_LIMIT", 5)
    before, after = messages("a", "b", "c"), messages("a", "x", "c")
    found = between({"messages": before, "n": 1}, {"messages": after, "n": 2})
    assert found.messages == []
    assert [(one.path, one.before, one.after) for one in found.fields] == [
        ("messages[1].content", "b", "x"),
        ("n", 1, 2),
    ]
    assert len(between({"messages": before}, {"messages": before[:2]}).messages) == 3
    assert between({"messages": before}, {"messages": [*before]}).fields == []


def test_a_difference_beyond_the_compared_part_is_reported() -> None:
    few = between({"x": [{"a": i} for i in range(60)]}, {"x": [{"b": i} for i in range(60)]})
    assert not few.coarse
    before, after = messages(*(f"a{n}" for n in range(5_500))), messages(*(f"b{n}" for n in range(5_500)))
    many = between({"messages": before, "y": [1, 2, 3]}, {"messages": after, "y": [1, 3]})
    assert many.coarse
    assert len(many.messages) == 11_000
    assert [one.path for one in many.fields] == ["y[1]"]
    appended = between(
        {"messages": messages(*map(str, range(9_999)))}, {"messages": messages(*map(str, range(10_000)))}
    )
    assert not appended.coarse
    assert [one.change for one in appended.messages].count("added") == 1


@given(JSON, JSON)
def test_keys_are_equal_for_equal_values_only(one: Any, other: Any) -> None:
    def text(value: Any) -> str:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)

    assert (key_of(one) == key_of(other)) == (text(one) == text(other))
    assert key_of([one, [other]]) != key_of([one, other])
    keys = Keys()
    assert keys.of([one, {"a": other}]) == key_of(json.loads(json.dumps([one, {"a": other}])))


TEXTS = st.text(alphabet="ab \n.", max_size=60)


def test_changed_words_are_found_in_their_lines() -> None:
    before = "The tent is 349.00 EUR.\nIt ships from Malmö today.\n"
    after = "The tent is 299.00 EUR.\nIt ships from Malmö tomorrow.\n"
    assert text_changes(before, after) == [
        Piece("same", "The tent is "),
        Piece("removed", "349"),
        Piece("added", "299"),
        Piece("same", ".00 EUR.\nIt ships from Malmö "),
        Piece("removed", "today"),
        Piece("added", "tomorrow"),
        Piece("same", ".\n"),
    ]


def test_long_unchanged_text_is_folded_between_and_beside_changes() -> None:
    context = " ".join(f"word{at}" for at in range(100))
    pieces = text_changes(f"one {context} two", f"eins {context} zwei")
    assert pieces is not None
    assert [piece.kind for piece in pieces] == ["removed", "added", "same", "folded", "same", "removed", "added"]
    assert len(pieces[2].text) == len(pieces[4].text) == 80
    pieces = text_changes(f"{context} two", f"{context} zwei")
    assert pieces is not None
    assert [piece.kind for piece in pieces] == ["folded", "same", "removed", "added"]


@pytest.mark.parametrize(("before", "after"), [("x" * (LONGEST + 1), "x"), ("one two three", "four five six")])
def test_long_and_different_texts_are_not_compared(before: str, after: str) -> None:
    assert text_changes(before, after) is None


@given(TEXTS, TEXTS)
def test_both_texts_can_be_read_from_the_changes(before: str, after: str) -> None:
    pieces = text_changes(before, after)
    if pieces is not None:
        assert "".join(piece.text for piece in pieces if piece.kind != "added") == before
        assert "".join(piece.text for piece in pieces if piece.kind != "removed") == after


@pytest.mark.parametrize("pair", [("a b ", "b a "), ("x. ", "y. "), ("a\n", "b\n"), ("ab", "ba"), ("a", "a")])
def test_the_time_of_a_comparison_is_limited(pair: tuple[str, str]) -> None:
    before, after = ((text * LONGEST)[:LONGEST] for text in pair)
    begun = time.process_time()
    text_changes(before, after + "!" if len(after) < LONGEST else after)
    assert time.process_time() - begun < 3
