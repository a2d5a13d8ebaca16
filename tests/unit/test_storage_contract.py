"""The contract checks find every deviation of a storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from tests.storage_contract import CHECKS, ContractBroken


class Otherwise(InMemoryStorage):
    """Changes calls before their execution, and replies before their return."""

    def __init__(
        self, ask: Callable[[calls.Call], calls.Call], answer: Callable[[calls.Call, calls.Reply], calls.Reply]
    ) -> None:
        super().__init__()
        self._ask = ask
        self._answer = answer

    def execute_blocking(self, call: calls.Call) -> calls.Reply:
        return self._answer(call, super().execute_blocking(self._ask(call)))


def asked(
    **options: Any,
) -> tuple[Callable[[calls.Call], calls.Call], Callable[[calls.Call, calls.Reply], calls.Reply]]:
    return lambda call: replace(call, **options), lambda call, reply: reply


def limited(
    **limits: int,
) -> tuple[Callable[[calls.Call], calls.Call], Callable[[calls.Call, calls.Reply], calls.Reply]]:
    def ask(call: calls.Call) -> calls.Call:
        more = {name: getattr(call.limits, name) + by for name, by in limits.items()}
        return replace(call, limits=replace(call.limits, **more))

    return ask, lambda call, reply: reply


def answered(
    change: Callable[[Any, Any], Any],
) -> tuple[Callable[[calls.Call], calls.Call], Callable[[calls.Call, calls.Reply], calls.Reply]]:
    def answer(call: calls.Call, reply: calls.Reply) -> calls.Reply:
        return reply._replace(
            results=tuple(change(one, result) for one, result in zip(call.commands, reply.results, strict=True))
        )

    return lambda call: call, answer


def without_time(command: Any, result: Any) -> Any:
    if isinstance(command, calls.ReadAll):
        return {key: one._replace(left_us=None) for key, one in result.items()}
    return result


def replaced(
    kind: type, change: Callable[[Any], Any]
) -> tuple[Callable[[calls.Call], calls.Call], Callable[[calls.Call, calls.Reply], calls.Reply]]:
    def ask(call: calls.Call) -> calls.Call:
        return replace(call, commands=tuple(change(one) if isinstance(one, kind) else one for one in call.commands))

    return ask, lambda call, reply: reply


@pytest.mark.parametrize(
    ("otherwise", "check"),
    [
        (asked(token=b""), "a_repeated_call_counts_once"),
        (asked(token=b""), "repeats_at_the_same_time_count_once"),
        (asked(used=()), "reading_a_variable_counts_as_use"),
        (asked(if_stamp=None), "a_call_with_an_outdated_stamp_changes_nothing"),
        (asked(ttl_us=None), "the_time_to_live_of_a_session_is_returned"),
        (asked(limits=calls.Limits()), "too_many_notes_are_refused"),
        (limited(keys=1), "too_many_variables_are_refused"),
        (limited(session_bytes=1), "too_many_bytes_are_refused"),
        (limited(keys=1), "limits_are_exact_under_many_writers"),
        (limited(keys=1), "evicting_keeps_to_the_limits_under_many_writers"),
        (limited(checkpoints=-1), "the_oldest_checkpoints_are_deleted_beyond_the_limit"),
        (answered(without_time), "the_remaining_time_is_returned"),
        (
            answered(lambda one, result: -1 if isinstance(one, calls.Increment) else result),
            "whole_numbers_are_incremented",
        ),
        (
            answered(lambda one, result: result[::-1] if isinstance(one, calls.ReadNotes) else result),
            "notes_stay_in_order",
        ),
        (
            answered(lambda one, result: result[::-1] if isinstance(one, calls.ListKeys) else result),
            "keys_are_found_by_globs",
        ),
        (
            answered(lambda one, result: dict(reversed(result.items())) if isinstance(one, calls.ReadAll) else result),
            "written_variables_are_read_back",
        ),
        (
            answered(lambda one, result: result._replace(bytes=1) if isinstance(result, calls.Measured) else result),
            "bytes_are_counted",
        ),
        (
            replaced(calls.Replayed, lambda one: replace(one, at_us=one.at_us + 1)),
            "replayed_commands_overwrite_nothing_newer",
        ),
        (
            replaced(calls.CompareAndSet, lambda one: replace(one, canonical=one.canonical and one.variable.value)),
            "compare_and_set_compares_canonical_forms",
        ),
        (replaced(calls.Append, lambda one: calls.Append(one.note.replace(b"\n", b""))), "notes_stay_in_order"),
        (
            replaced(calls.RestoreCheckpoint, lambda one: calls.DeleteCheckpoint(one.checkpoint_id)),
            "a_restore_brings_back_all_content",
        ),
        (
            (lambda call: replace(call, address=call.address._replace(tenant="")), lambda call, reply: reply),
            "sessions_with_different_ids_are_separate",
        ),
        (
            (
                lambda call: replace(call, address=call.address._replace(session_id=call.address.session_id.lower())),
                lambda call, reply: reply,
            ),
            "sessions_with_different_ids_are_separate",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_contract_checks_find_each_deviation(otherwise: Any, check: str) -> None:
    (chosen,) = (one for one in CHECKS if one.name == check)
    with pytest.raises(ContractBroken) as broken:
        chosen.run_blocking(Otherwise(*otherwise))
    assert str(broken.value)
