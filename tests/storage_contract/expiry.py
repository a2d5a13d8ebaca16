"""Checks of what expires: variables, and sessions as a whole."""

from __future__ import annotations

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


def expired_variables_make_room(sessions: checks.Sessions) -> checks.Script[None]:
    """This happens before anything is refused or evicted."""
    for on_full in ("refuse", "evict"):
        session = sessions.new(keys=3, session_bytes=10, on_full=on_full)
        yield from session.do(
            calls.Write(
                (checks.variable("stays"), checks.variable("b", b"1", 50_000), checks.variable("c", b"1", 50_000))
            )
        )
        yield from session.until(calls.ListKeys("*"), lambda keys: keys == ["stays"], "variables expired")
        reply = yield from session.ask(calls.Write((checks.variable("d"), checks.variable("e"))))
        checks.equal(reply.evicted, 0, "how many variables had to go where others had expired")
        yield from session.gives(calls.ListKeys("*"), ["d", "e", "stays"])
        checks.equal((yield from session.do(calls.Measure()))[:2], (3, 10), "keys and bytes")


CHECKS = (
    expired_variables_make_room,
    every_command_ignores_expired_variables,
    the_time_to_live_of_a_session_is_returned,
    expired_sessions_are_invisible,
    a_sweep_removes_only_expired_sessions,
    forgetting_a_tenant_removes_all_its_sessions,
)
