"""Checks of what expires: variables, and sessions as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from locus_mysql.errors import NotFound
from locus_mysql.families.working import calls

from . import checks

SHORT_US = 100_000
HOUR_US = 3_600_000_000


def every_command_ignores_expired_variables(sessions: checks.Sessions) -> checks.Script[None]:
    """Variables that have not expired stay visible."""
    session = sessions.new()
    yield from session.do(calls.Write((checks.variable("gone", b"1", SHORT_US), checks.variable("stays"))))
    yield from session.until(calls.Read(("gone",)), lambda found: not found, "a variable expired")
    checks.equal(
        list((yield from session.do(calls.ReadAll()))), ["stays"], "what ReadAll finds beside an expired variable"
    )
    yield from session.gives(calls.ListKeys("*"), ["stays"])
    yield from session.gives(calls.Measure(), calls.Measured(1, 6, 0, 0, None))
    yield from session.gives(calls.CompareAndSet(checks.variable("gone", b"2"), b"1"), False)
    yield from session.gives(calls.Remove(("gone",)), 0)


def an_expired_variable_counts_as_deleted(sessions: checks.Sessions) -> checks.Script[None]:
    """A new value under its key does not inherit its time to live."""
    session = sessions.new()
    yield from session.do(calls.Write(tuple(checks.variable(key, b"7", SHORT_US) for key in ("a", "b", "c", "d"))))
    yield from session.until(calls.ReadAll(), lambda found: not found, "all variables expired")
    yield from session.gives(calls.Increment("a", 1), 1)
    yield from session.gives(calls.CompareAndSet(checks.variable("b"), None), True)
    yield from session.do(calls.Write((checks.variable("c"),)))
    found = yield from session.do(calls.ReadAll())
    checks.equal(
        {key: one.left_us for key, one in found.items()}, dict.fromkeys("abc"), "the time that new values have left"
    )
    yield from session.gives(calls.Clear(), 3)
    yield from session.gives(calls.Measure(), calls.Measured())


def the_remaining_time_is_returned(sessions: checks.Sessions) -> checks.Script[None]:
    """It decreases."""
    session = sessions.new()
    yield from session.do(
        calls.Write(
            (checks.variable("a", b"1", HOUR_US), checks.variable("b", b"1", 2 * HOUR_US), checks.variable("c"))
        )
    )
    found = yield from session.do(calls.ReadAll())
    left = {key: one.left_us for key, one in found.items()}
    checks.equal(left["c"], None, "the time left of a variable without time to live")
    checks.true(
        0 < (left["a"] or 0) <= HOUR_US < (left["b"] or 0) <= 2 * HOUR_US, f"the time left is that of each: {left}"
    )
    before = left["a"] or 0
    yield from session.until(
        calls.Read(("a",)), lambda found: 0 < (found["a"].left_us or 0) < before, "the time left fell"
    )


def writes_replace_the_time_to_live(sessions: checks.Sessions) -> checks.Script[None]:
    """Increments and comparisons keep the time to live."""
    session = sessions.new()
    yield from session.do(calls.Write((checks.variable("a", b"1", HOUR_US),)))
    yield from session.do(calls.Increment("a", 1))
    checks.true(
        0 < ((yield from session.do(calls.Read(("a",))))["a"].left_us or 0) <= HOUR_US,
        "an increment keeps the time to live",
    )
    yield from session.do(calls.CompareAndSet(checks.variable("a", b"3", 99 * HOUR_US), b"2"))
    left = (yield from session.do(calls.Read(("a",))))["a"].left_us or 0
    checks.true(0 < left <= HOUR_US, "a comparison that held keeps the time to live")
    yield from session.do(calls.Write((checks.variable("a", b"4"),)))
    checks.equal(
        (yield from session.do(calls.Read(("a",))))["a"].left_us,
        None,
        "the time left after a write without time to live",
    )
    yield from session.do(calls.CompareAndSet(checks.variable("a", b"5", HOUR_US), b"4"))
    checks.equal(
        (yield from session.do(calls.Read(("a",))))["a"].left_us, None, "the time left after a comparison that held"
    )
    yield from session.do(calls.Write((checks.variable("a", b"4", 2 * HOUR_US),)))
    checks.true(
        ((yield from session.do(calls.Read(("a",))))["a"].left_us or 0) > HOUR_US, "a write gives another time to live"
    )


def the_time_to_live_of_a_session_is_returned(sessions: checks.Sessions) -> checks.Script[None]:
    """It is that of the call that began it, until Touch gives another one."""
    session = sessions.new(ttl_us=HOUR_US)
    checks.equal((yield from session.ask(calls.Append(b"1"))).ttl_us, HOUR_US, "the time to live of a new session")
    yield from session.ask(calls.Append(b"2"), ttl_us=5)
    checks.equal(
        (yield from session.ask(calls.ReadNotes(), ttl_us=None)).ttl_us, HOUR_US, "the time to live that a read returns"
    )
    left = (yield from session.do(calls.Measure())).left_us or 0
    checks.true(
        HOUR_US < left <= calls.lifetime_us(HOUR_US), f"a session is kept for an eighth longer than its time: {left}"
    )
    yield from session.gives(calls.Touch(), True)
    checks.equal((yield from session.ask(calls.Measure())).ttl_us, HOUR_US, "the time to live after Touch without one")
    checks.equal(
        (yield from session.ask(calls.Touch(2 * HOUR_US))).ttl_us,
        2 * HOUR_US,
        "the time to live after Touch with one",
    )
    checks.true(
        ((yield from session.do(calls.Measure())).left_us or 0) > 2 * HOUR_US, "Touch gives the new time at once"
    )
    checks.equal(
        (yield from session.ask(calls.Touch(HOUR_US))).ttl_us,
        HOUR_US,
        "the time to live after Touch with a shorter one",
    )
    left = (yield from session.do(calls.Measure())).left_us or 0
    checks.true(HOUR_US < left <= calls.lifetime_us(HOUR_US), "Touch gives a shorter time at once")
    lasting = sessions.new()
    checks.equal(
        (yield from lasting.ask(calls.Append(b"1"), ttl_us=None)).ttl_us,
        None,
        "the time to live of a session without one",
    )
    checks.equal((yield from lasting.do(calls.Measure())).left_us, None, "the time left of a session without one")
    yield from lasting.ask(calls.Append(b"1"), ttl_us=5)
    checks.equal((yield from lasting.ask(calls.ReadNotes())).ttl_us, None, "the time to live after a call with one")
    checks.equal(
        (yield from lasting.ask(calls.Touch(HOUR_US))).ttl_us,
        HOUR_US,
        "the time to live after Touch of a session without",
    )
    checks.true(
        ((yield from lasting.do(calls.Measure())).left_us or 0) > HOUR_US,
        "Touch gives a session without one a time to live",
    )


def every_write_renews_a_session(sessions: checks.Sessions) -> checks.Script[None]:
    """This includes a write without effect."""
    session = sessions.new(ttl_us=HOUR_US)
    yield from session.do(calls.Append(b"1"))
    for command in (
        calls.Write((checks.variable("a"),)),
        calls.CompareAndSet(checks.variable("a"), b"absent"),
        calls.Remove(("absent",)),
        calls.Touch(),
    ):
        yield from _renews(session, command)


def reads_renew_a_session_if_asked_to(sessions: checks.Sessions) -> checks.Script[None]:
    """Otherwise they do not."""
    session = sessions.new(ttl_us=HOUR_US)
    yield from session.do(calls.Write((checks.variable("a"),)))
    before = (yield from session.do(calls.Measure())).left_us or 0
    yield from session.until(calls.Measure(), lambda one: (one.left_us or 0) < before - 50_000, "a read did not renew")
    for command in (calls.Read(("a",)), calls.ReadAll(), calls.ReadNotes(), calls.Read(("absent",))):
        yield from _renews(session, command, renew=True)


def _renews(
    session: checks.CheckedSession, command: calls.Command[object], *, renew: bool = False
) -> checks.Script[None]:
    """The time left is compared within one call, and again if the machine was too slow for the difference to show."""
    for _ in range(20):
        start = (yield from session.do(calls.Measure())).left_us or 0
        fallen = yield from session.until(calls.Measure(), _less_left(start - 50_000), "the time left fell")
        reply = yield from session.ask(command, calls.Measure(), renew=renew)
        measured = reply.results[1]
        if isinstance(measured, calls.Measured) and (measured.left_us or 0) > (fallen.left_us or 0):
            return
    raise checks.ContractBroken(f"{command} did not give the session its whole time again: {measured} after {fallen}.")


def _less_left(bound_us: int) -> Callable[[calls.Measured], bool]:
    return lambda measured: (measured.left_us or 0) < bound_us


def expired_sessions_are_invisible(sessions: checks.Sessions) -> checks.Script[None]:
    """The next write begins a new session."""
    session = sessions.new(ttl_us=SHORT_US)
    commands = (
        calls.Write((checks.variable("a"), checks.variable("b", b"1", HOUR_US))),
        calls.Append(b"1"),
        calls.WriteTask(b"{}"),
        calls.CreateCheckpoint("c"),
    )
    stamp = (yield from session.ask(*commands)).stamp
    yield from session.until(calls.Measure(), lambda measured: measured == calls.Measured(), "a session expired")
    reply = yield from session.ask(
        calls.ReadAll(), calls.ReadNotes(), calls.ReadTask(), calls.ListCheckpoints(), renew=True
    )
    checks.equal(reply, calls.Reply(({}, [], None, [])), "the content of an expired session")
    for command, result in ((calls.Touch(), False), (calls.Remove(("a",)), 0), (calls.End(), False)):
        checks.equal(
            (yield from session.ask(command)),
            calls.Reply((result,)),
            f"the reply to {command} when the session had expired",
        )
    yield from session.refused(NotFound, calls.RestoreCheckpoint("c", "undo"))
    reply = yield from session.ask(
        *(
            calls.Append(b"2"),
            calls.ReadNotes(),
            calls.ReadAll(),
            calls.ReadTask(),
            calls.ListCheckpoints(),
            calls.Measure(),
        ),
        ttl_us=HOUR_US,
        if_stamp=0,
    )
    checks.equal(reply.results[1:5], ([b"2"], {}, None, []), "what a session holds that was begun when it had expired")
    checks.equal(reply.ttl_us, HOUR_US, "the time to live of a session that was begun when it had expired")
    checks.true(reply.stamp > stamp, "the stamp rose when the session was created again")


def a_short_touch_ends_a_session_soon(sessions: checks.Sessions) -> checks.Script[None]:
    """The previous time to live does not matter."""
    for ttl_us in (None, HOUR_US):
        session = sessions.new(ttl_us=ttl_us)
        yield from session.ask(calls.Append(b"1"), calls.WriteTask(b"{}"), calls.Write((checks.variable("a"),)))
        yield from session.do(calls.Touch(SHORT_US))
        yield from session.until(
            calls.Measure(), lambda measured: measured == calls.Measured(), "a touched session expired"
        )
        checks.equal(
            (yield from session.ask(calls.ReadNotes(), calls.ReadAll(), calls.ReadTask())).results,
            ([], {}, None),
            "the content of an expired session",
        )


def a_sweep_removes_only_expired_sessions(sessions: checks.Sessions) -> checks.Script[None]:
    """It removes them completely."""
    gone = [sessions.new(ttl_us=SHORT_US) for _ in range(5)]
    stays, lasts = sessions.new(ttl_us=HOUR_US), sessions.new()
    for session in (*gone, stays, lasts):
        yield from session.ask(
            calls.Write((checks.variable("a"), checks.variable("b", b"1", SHORT_US))),
            calls.Append(b"1"),
            calls.CreateCheckpoint("c"),
        )
    for session in gone:
        yield from session.until(calls.Measure(), lambda measured: measured == calls.Measured(), "a session expired")
    for limit in (2, 1_000):
        swept = yield checks.Sweep(limit)
        checks.true(
            isinstance(swept, int) and 0 <= swept <= limit, f"a sweep returns how many sessions it removed: {swept}"
        )
    for session in gone:
        checks.equal(
            (yield from session.ask(calls.ReadAll(), calls.ReadNotes())),
            calls.Reply(({}, [])),
            "the content of a session that was swept",
        )
    for session in (stays, lasts):
        checks.equal(
            list((yield from session.do(calls.ReadAll())))[:1], ["a"], "the variables of a session that did not expire"
        )
        yield from session.gives(calls.ReadNotes(), [b"1"])
        checks.equal(
            len((yield from session.do(calls.ListCheckpoints()))), 1, "the checkpoints of a session that did not expire"
        )


def forgetting_a_tenant_removes_all_its_sessions(sessions: checks.Sessions) -> checks.Script[None]:
    """Other tenants keep theirs, even with similar names. A later write begins a new session."""
    ids = ("s", "S", "s*", "{s}:values", "\u00e9" * 512)
    gone = [sessions.named("*", session_id) for session_id in ids]
    stay = [sessions.named(tenant, "s") for tenant in ("", "**", "*:", "a", "?", "[*]", "\\*", "\u00e9" * 100)]
    for session in (*gone, *stay):
        yield from session.ask(
            calls.Write((checks.variable("a", b"1", HOUR_US),)), calls.Append(b"1"), calls.CreateCheckpoint("c")
        )
    checks.equal(
        (yield checks.ForgetTenant(gone[0].address.tenant)), len(gone), "how many sessions of the tenant were forgotten"
    )
    for session in gone:
        checks.equal(
            (yield from session.ask(calls.ReadAll(), calls.ReadNotes(), calls.ListCheckpoints(), calls.Measure())),
            calls.Reply(({}, [], [], calls.Measured())),
            "the content of a session of a tenant that was forgotten",
        )
    for session in stay:
        found = yield from session.ask(calls.ReadAll(), calls.ReadNotes())
        checks.equal(
            [list(cast("dict[str, calls.Found]", found.results[0])), found.results[1]],
            [["a"], [b"1"]],
            "others' sessions",
        )
    checks.equal(
        (yield checks.ForgetTenant(gone[0].address.tenant)), 0, "how many sessions were forgotten when there were none"
    )
    yield from gone[0].do(calls.Append(b"2"))
    yield from gone[0].gives(calls.ReadNotes(), [b"2"])


CHECKS = (
    every_command_ignores_expired_variables,
    an_expired_variable_counts_as_deleted,
    the_remaining_time_is_returned,
    writes_replace_the_time_to_live,
    the_time_to_live_of_a_session_is_returned,
    every_write_renews_a_session,
    reads_renew_a_session_if_asked_to,
    expired_sessions_are_invisible,
    a_short_touch_ends_a_session_soon,
    a_sweep_removes_only_expired_sessions,
    forgetting_a_tenant_removes_all_its_sessions,
)
