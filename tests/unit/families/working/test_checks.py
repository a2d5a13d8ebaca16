"""The checks of storages find what a storage does otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from locus_mysql.families.working.calls import (
    Append,
    Call,
    CompareAndSet,
    DeleteCheckpoint,
    Increment,
    Inspect,
    Limits,
    ListKeys,
    Measured,
    ReadAll,
    ReadNotes,
    Reply,
    RestoreCheckpoint,
)
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from locus_mysql.families.working.testing import CHECKS, ContractBroken


class Otherwise(InMemoryStorage):
    """Changes calls before they are carried out, and replies before they are given."""

    def __init__(self, ask: Callable[[Call], Call], answer: Callable[[Call, Reply], Reply]) -> None:
        super().__init__()
        self._ask = ask
        self._answer = answer

    def execute_blocking(self, call: Call) -> Reply:
        return self._answer(call, super().execute_blocking(self._ask(call)))


def asked(**options: Any) -> tuple[Callable[[Call], Call], Callable[[Call, Reply], Reply]]:
    return lambda call: replace(call, **options), lambda call, reply: reply


def limited(**limits: int) -> tuple[Callable[[Call], Call], Callable[[Call, Reply], Reply]]:
    def ask(call: Call) -> Call:
        more = {name: getattr(call.limits, name) + by for name, by in limits.items()}
        return replace(call, limits=replace(call.limits, **more))

    return ask, lambda call, reply: reply


def answered(change: Callable[[Any, Any], Any]) -> tuple[Callable[[Call], Call], Callable[[Call, Reply], Reply]]:
    def answer(call: Call, reply: Reply) -> Reply:
        return reply._replace(
            results=tuple(change(one, result) for one, result in zip(call.commands, reply.results, strict=True))
        )

    return lambda call: call, answer


def without_time(command: Any, result: Any) -> Any:
    if isinstance(command, ReadAll):
        return {key: one._replace(left_us=None) for key, one in result.items()}
    return result


def replaced(kind: type, change: Callable[[Any], Any]) -> tuple[Callable[[Call], Call], Callable[[Call, Reply], Reply]]:
    def ask(call: Call) -> Call:
        return replace(call, commands=tuple(change(one) if isinstance(one, kind) else one for one in call.commands))

    return ask, lambda call, reply: reply


@pytest.mark.parametrize(
    ("otherwise", "check"),
    [
        (asked(token=b""), "a_repeated_call_counts_once"),
        (asked(token=b""), "repeats_at_the_same_time_count_once"),
        (asked(used=()), "what_was_read_is_used"),
        (asked(if_stamp=None), "a_stamp_can_be_relied_on"),
        (asked(ttl_us=None), "the_time_to_live_of_a_session_is_told"),
        (asked(limits=Limits()), "too_many_notes_are_refused"),
        (limited(keys=1), "too_many_variables_are_refused"),
        (limited(session_bytes=1), "too_many_bytes_are_refused"),
        (limited(keys=1), "limits_are_exact_under_many_writers"),
        (limited(keys=1), "evicting_keeps_to_the_limits_under_many_writers"),
        (limited(checkpoints=-1), "the_oldest_checkpoints_go"),
        (answered(without_time), "the_time_left_is_told"),
        (answered(lambda one, result: -1 if isinstance(one, Increment) else result), "whole_numbers_are_incremented"),
        (answered(lambda one, result: result[::-1] if isinstance(one, ReadNotes) else result), "notes_stay_in_order"),
        (
            answered(lambda one, result: result[::-1] if isinstance(one, ListKeys) else result),
            "keys_are_found_by_globs",
        ),
        (
            answered(lambda one, result: dict(reversed(result.items())) if isinstance(one, ReadAll) else result),
            "what_is_written_is_read",
        ),
        (
            answered(lambda one, result: result._replace(bytes=1) if isinstance(result, Measured) else result),
            "bytes_are_counted",
        ),
        (
            answered(lambda one, result: result._replace(task=0) if isinstance(one, Inspect) else result),
            "versions_tell_what_was_written",
        ),
        (
            replaced(CompareAndSet, lambda one: replace(one, likeness=one.likeness and one.variable.likeness)),
            "values_are_compared_by_likeness",
        ),
        (replaced(Append, lambda one: Append(one.note.replace(b"\n", b""))), "notes_stay_in_order"),
        (
            replaced(RestoreCheckpoint, lambda one: DeleteCheckpoint(one.checkpoint_id)),
            "restoring_brings_everything_back",
        ),
        (
            (lambda call: replace(call, address=call.address._replace(tenant="")), lambda call, reply: reply),
            "ids_keep_sessions_apart",
        ),
        (
            (
                lambda call: replace(call, address=call.address._replace(session_id=call.address.session_id.lower())),
                lambda call, reply: reply,
            ),
            "ids_keep_sessions_apart",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_storage_that_does_otherwise_is_found(otherwise: Any, check: str) -> None:
    (chosen,) = (one for one in CHECKS if one.name == check)
    with pytest.raises(ContractBroken) as broken:
        chosen.run_blocking(Otherwise(*otherwise))
    assert str(broken.value)
