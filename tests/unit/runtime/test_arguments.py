"""Arguments of callers are checked before any statement is sent."""

from __future__ import annotations

import json
from contextvars import copy_context
from typing import Any

import pytest

from locus_mysql import SyncCheckpointStore
from locus_mysql.errors import ConfigError, InvalidInput
from locus_mysql.runtime.arguments import (
    METADATA_LIMIT_BYTES,
    check_checkpoint_id,
    check_days,
    check_each,
    check_limit,
    check_pairs,
    check_tenant,
    check_thread_id,
    encode_metadata,
)
from locus_mysql.runtime.matching import index_keys


@pytest.mark.parametrize(("check", "limit"), [(check_thread_id, 512), (check_checkpoint_id, 128), (check_tenant, 128)])
class TestIds:
    def test_any_text_up_to_the_limit_is_one(self, check: Any, limit: int) -> None:
        for good in ("a", " ", "😀" * limit, "a/b:c'\"`%_\\", "\x01", "\u200b"):
            assert check(good) == good

    def test_invalid_ids_are_refused_with_the_reason(self, check: Any, limit: int) -> None:
        with pytest.raises(InvalidInput, match=str(limit)):
            check("x" * (limit + 1))
        with pytest.raises(InvalidInput, match="empty"):
            check("")
        with pytest.raises(InvalidInput, match="NUL"):
            check("a\0")
        with pytest.raises(InvalidInput, match="surrogate"):
            check("\udc00")
        for bad in (None, 1, b"a", ["a"], True):
            with pytest.raises(InvalidInput, match="must be text"):
                check(bad)


@pytest.mark.parametrize("bad", [-1, 2**31 + 1, 1.0, "1", None, True])
def test_limits_are_whole_numbers_in_range(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="whole number"):
        check_limit(bad)
    assert [check_limit(good) for good in (0, 1, 2**31)] == [0, 1, 2**31]


class TestMetadata:
    def test_the_text_keeps_order_and_has_keys(self) -> None:
        text, keys = encode_metadata({"b": 1, "a": ["ä"]})
        assert text == '{"b":1,"a":["ä"]}'
        assert json.loads(keys or "") == index_keys({"a": ["ä"], "b": 1})

    def test_the_limit_is_in_bytes(self) -> None:
        frame = len('{"a":""}')
        assert encode_metadata({"a": "x" * (METADATA_LIMIT_BYTES - frame)})[0]
        with pytest.raises(InvalidInput, match=str(METADATA_LIMIT_BYTES + 1)):
            encode_metadata({"a": "x" * (METADATA_LIMIT_BYTES - frame + 1)})
        with pytest.raises(InvalidInput, match="limit"):
            encode_metadata({"a": "ä" * (METADATA_LIMIT_BYTES // 2)})

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), [float("-inf")], {"x": float("nan")}])
    def test_numbers_that_json_does_not_know_are_refused(self, bad: Any) -> None:
        with pytest.raises(InvalidInput, match="NaN or an infinity"):
            encode_metadata({"a": bad})


def test_an_age_is_a_number_of_days_up_to_a_thousand_years() -> None:
    assert [check_days(age) for age in (0, 0.5, 365_000)] == [0, 0.5, 365_000]
    for bad in (-1, 365_001, float("nan"), True, "1", None):
        with pytest.raises(InvalidInput, match="older_than_days must be a number from 0 to 365000"):
            check_days(bad)


def test_lists_hold_values_of_one_type() -> None:
    assert check_each(iter((1, 2)), int, "numbers") == [1, 2]
    for bad in (None, 5, "ab", {1: 2}):
        with pytest.raises(InvalidInput, match="numbers must be a list of int values"):
            check_each(bad, int, "numbers")
    with pytest.raises(InvalidInput, match="Each of the numbers must be a int, not str"):
        check_each([1, "2"], int, "numbers")


def test_pairs_are_lists_of_two() -> None:
    assert check_pairs([("a", 1), ["b", 2]], "writes") == [("a", 1), ["b", 2]]
    for bad in (None, 5, "ab", {"a": 1}, [1], ["ab"], [("a",)]):
        with pytest.raises(InvalidInput, match="writes must be"):
            check_pairs(bad, "writes")


def test_a_scope_that_ends_in_another_context_says_what_to_do() -> None:
    scope = SyncCheckpointStore("mysql://user@localhost/app").tenant_scope("acme")
    copy_context().run(scope.__enter__)
    with pytest.raises(ConfigError, match="Make a store for each request"):
        scope.__exit__(None, None, None)
