"""Checks a session's limits on MySQL. The server checks them too; this module determines which limit a call exceeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....errors import CapacityExceeded
from .. import calls
from .mysql_plans import Plan, WritePlan


class Usage(NamedTuple):
    """Counts and sizes of a session's content, without expired variables.

    Args:
        notes: Notes.
        size_bytes: Bytes.
        variables: Variables.
        other_bytes: Bytes of notes and task state.
        present: Number of existing variables among those that the call writes.
        present_bytes: Their bytes, with those of the task state if the call writes it.
    """

    notes: int = 0
    size_bytes: int = 0
    variables: int = 0
    other_bytes: int = 0
    present: int = 0
    present_bytes: int = 0


def begins_over_limits(call: calls.Call, plans: Sequence[Plan]) -> bool:
    """Return whether a call would exceed the limits of a new session: they are then checked after its writes."""
    variables = notes = size_bytes = 0
    for plan in plans:
        if isinstance(plan, WritePlan):
            more_variables, more_notes, more_bytes = plan.change.begun
            variables, notes, size_bytes = variables + more_variables, notes + more_notes, size_bytes + more_bytes
    limits = call.limits
    return variables > limits.keys or notes > limits.scratchpad_entries or size_bytes > limits.session_bytes


def raise_if_full(call: calls.Call, plans: Sequence[WritePlan], usage: Usage, more_bytes: int) -> None:
    """Check that a call fits into its session.

    Args:
        call: The call.
        plans: The plans of its commands that write.
        usage: The usage of the session.
        more_bytes: Bytes that the call adds and the plans do not count.

    Raises:
        CapacityExceeded: A limit would be exceeded.
    """
    limits, session_id = call.limits, call.address.session_id
    additions = [plan.addition for plan in plans if plan.addition is not None]
    names = {name for addition in additions for name in addition.names}
    if limits.on_full == "evict":  # because all other variables are removed before
        written_task = any(isinstance(command, calls.WriteTask) for command in call.commands)
        present_bytes = min(usage.present_bytes, usage.other_bytes) if written_task else 0
        usage = usage._replace(variables=0, size_bytes=usage.other_bytes, present=0, present_bytes=present_bytes)
    notes = usage.notes + sum(isinstance(command, calls.Append) for command in call.commands)
    variables = usage.variables + len(names) - usage.present
    added_bytes = more_bytes + sum(addition.size_bytes for addition in additions)
    size_bytes = usage.size_bytes + added_bytes - usage.present_bytes
    for limit, used, allowed in (
        ("max_scratchpad_entries", notes, limits.scratchpad_entries),
        ("max_keys", variables, limits.keys),
        ("max_session_bytes", size_bytes, limits.session_bytes),
    ):
        if used > allowed:
            raise CapacityExceeded(limit, used, allowed, session_id)
