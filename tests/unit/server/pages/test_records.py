"""Texts of items, namespaces as a tree, and tasks of sessions, from values of any shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.server.pages.records import NamespaceNode, task_of, text_of, text_of_preview


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"text": "a"}, "a"),
        ({"source": "x", "content": "a"}, "a"),
        ({"kind": "Memory", "content": {"content": "a"}}, "a"),
        ("a", "a"),
        ({"n": 1}, ""),
        ([1], ""),
        (None, ""),
        ({"text": 3}, ""),
    ],
)
def test_the_text_of_a_value_is_found(value: Any, text: str) -> None:
    assert text_of(value) == text
    assert text_of_preview(json.dumps(value)) == (text or json.dumps(value))


@given(st.text(), st.integers(0, 200))
def test_a_text_that_is_cut_off_shows_its_beginning(text: str, end: int) -> None:
    preview = json.dumps({"id": 1, "text": text})[:end]
    found = text_of_preview(preview)
    assert text.encode(errors="replace").startswith(found.encode(errors="replace")) or found == preview


def tree(node: NamespaceNode) -> Any:
    return {(one.label, one.row.items if one.row else None): tree(one) for one in node.below}


@pytest.mark.parametrize(
    "state",
    [None, {}, {"damaged": "x"}, {"task_id": 1, "status": "running"}, {"task_id": "t", "status": None}],
)
def test_a_state_that_is_no_task_is_none(state: Any) -> None:
    assert task_of(state) is None


@pytest.mark.parametrize("progress", [float("nan"), 2, -1, "half", True, None])
def test_an_impossible_progress_is_not_shown(progress: Any) -> None:
    task = task_of({"task_id": "t", "status": "running", "progress": progress})
    assert task is not None
    assert task.percent is None
