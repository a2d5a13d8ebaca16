"""Stored texts in the prompt block of working memory."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql import WorkingMemoryHook
from locus_mysql.errors import ConfigError
from locus_mysql.integrations.locus.working_hook import quoted
from locus_mysql.working import InMemoryStorage, WorkingMemory


@given(st.text(st.characters() | st.sampled_from('<>&"\\\n\u2028\u202e\U000e0001')), st.integers(3, 200))
def test_a_text_becomes_one_short_line_of_json_without_tags(text: str, limit: int) -> None:
    line = quoted(text, limit)
    assert len(line) <= limit
    assert line.isprintable()
    assert not set(line) & set("<>&")
    heard = json.loads(line)
    if heard != text:
        assert heard.endswith("…")
        assert text.startswith(heard[:-1])
        assert len(quoted(text, 10_000)) > limit


@given(st.text())
def test_a_text_that_fits_is_included_whole(text: str) -> None:
    assert json.loads(quoted(text, 12 * len(text) + 2)) == text


@pytest.mark.parametrize("options", [{"notes": -1}, {"notes": 1_001}, {"max_chars": 1_499}, {"max_chars": 10**7}])
def test_a_hook_refuses_numbers_out_of_range(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        WorkingMemoryHook(WorkingMemory("s", InMemoryStorage()), **options)
