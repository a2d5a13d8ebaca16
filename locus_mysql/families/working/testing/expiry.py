"""Checks of what expires: variables, and sessions as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ....errors import NotFound
from ..calls import (
    Append,
    Clear,
    Command,
    CompareAndSet,
    CreateCheckpoint,
    End,
    Found,
    Increment,
    Inspect,
    ListCheckpoints,
    ListKeys,
    Measure,
    Measured,
    Read,
    ReadAll,
    ReadNotes,
    ReadTask,
    Remove,
    Reply,
    RestoreCheckpoint,
    Touch,
    Versions,
    Write,
    WriteTask,
    lifetime_us,
)
from .checks import (
    ContractBroken,
    ForgetTenant,
    Script,
    Session,
    Sessions,
    Sweep,
    equal,
    true,
    variable,
)

SHORT_US = 100_000
HOUR_US = 3_600_000_000


def expired_variables_are_gone_for_every_call(sessions: Sessions) -> Script[None]:
    """And those beside them are not."""
    session = sessions.new()
    yield from session.do(Write((variable("gone", b"1", SHORT_US), variable("stays"))))
    yield from session.until(Read(("gone",)), lambda found: not found, "a variable expired")
    equal(list((yield from session.do(ReadAll()))), ["stays"], "what ReadAll finds beside an expired variable")
    equal((yield from session.do(ListKeys("*"))), ["stays"], "what ListKeys finds beside an expired variable")
    equal(
        (yield from session.do(Measure())), Measured(1, 6, 0, 0, None), "what is measured without an expired variable"
    )
    equal((yield from session.do(CompareAndSet(variable("gone", b"2"), b"1"))), False, "a comparison with what expired")
    equal((yield from session.do(Remove(("gone",)))), 0, "how many expired variables Remove deleted")


def what_expired_is_as_if_deleted(sessions: Sessions) -> Script[None]:
    """A new value under its key does not inherit its time to live."""
    session = sessions.new()
    yield from session.do(Write(tuple(variable(key, b"7", SHORT_US) for key in ("a", "b", "c", "d"))))
    version = (yield from session.do(Inspect(("a",)))).variables["a"]
    yield from session.until(ReadAll(), lambda found: not found, "all variables expired")
    equal((yield from session.do(Inspect(("a",)))).variables, {"a": version}, "the version of what expired just now")
    equal((yield from session.do(Increment("a", 1))), 1, "an increment of what expired")
    equal((yield from session.do(CompareAndSet(variable("b"), None))), True, "setting what expired, expecting nothing")
    yield from session.do(Write((variable("c"),)))
    found = yield from session.do(ReadAll())
    equal({key: one.left_us for key, one in found.items()}, dict.fromkeys("abc"), "the time that new values have left")
    equal((yield from session.do(Clear())), 3, "how many variables Clear deleted, where others had expired")
    equal((yield from session.do(Measure())), Measured(), "what is left")


def the_time_left_is_told(sessions: Sessions) -> Script[None]:
    """And grows shorter."""
    session = sessions.new()
    yield from session.do(Write((variable("a", b"1", HOUR_US), variable("b", b"1", 2 * HOUR_US), variable("c"))))
    found = yield from session.do(ReadAll())
    left = {key: one.left_us for key, one in found.items()}
    equal(left["c"], None, "the time left of a variable without time to live")
    true(0 < (left["a"] or 0) <= HOUR_US < (left["b"] or 0) <= 2 * HOUR_US, f"the time left is that of each: {left}")
    before = left["a"] or 0
    yield from session.until(Read(("a",)), lambda found: 0 < (found["a"].left_us or 0) < before, "the time left fell")


def writes_replace_the_time_to_live(sessions: Sessions) -> Script[None]:
    """Increments and comparisons keep it."""
    session = sessions.new()
    yield from session.do(Write((variable("a", b"1", HOUR_US),)))
    yield from session.do(Increment("a", 1))
    true(
        0 < ((yield from session.do(Read(("a",))))["a"].left_us or 0) <= HOUR_US, "an increment keeps the time to live"
    )
    yield from session.do(CompareAndSet(variable("a", b"3", 99 * HOUR_US), b"2"))
    left = (yield from session.do(Read(("a",))))["a"].left_us or 0
    true(0 < left <= HOUR_US, "a comparison that held keeps the time to live")
    yield from session.do(Write((variable("a", b"4"),)))
    equal((yield from session.do(Read(("a",))))["a"].left_us, None, "the time left after a write without time to live")
    yield from session.do(CompareAndSet(variable("a", b"5", HOUR_US), b"4"))
    equal((yield from session.do(Read(("a",))))["a"].left_us, None, "the time left after a comparison that held")
    yield from session.do(Write((variable("a", b"4", 2 * HOUR_US),)))
    true(((yield from session.do(Read(("a",))))["a"].left_us or 0) > HOUR_US, "a write gives another time to live")


def the_time_to_live_of_a_session_is_told(sessions: Sessions) -> Script[None]:
    """It is that of the call that began it, until Touch gives another one."""
    session = sessions.new(ttl_us=HOUR_US)
    equal((yield from session.ask(Append(b"1"))).ttl_us, HOUR_US, "the time to live of a new session")
    yield from session.ask(Append(b"2"), ttl_us=5)
    equal((yield from session.ask(ReadNotes(), ttl_us=None)).ttl_us, HOUR_US, "the time to live that a read tells")
    left = (yield from session.do(Measure())).left_us or 0
    true(HOUR_US < left <= lifetime_us(HOUR_US), f"a session is kept for an eighth longer than its time: {left}")
    equal((yield from session.do(Touch())), True, "the result of Touch")
    equal((yield from session.ask(Measure())).ttl_us, HOUR_US, "the time to live after Touch without one")
    equal(
        (yield from session.ask(Touch(2 * HOUR_US))).ttl_us,
        2 * HOUR_US,
        "the time to live after Touch with one",
    )
    true(((yield from session.do(Measure())).left_us or 0) > 2 * HOUR_US, "Touch gives the new time at once")
    equal((yield from session.ask(Touch(HOUR_US))).ttl_us, HOUR_US, "the time to live after Touch with a shorter one")
    left = (yield from session.do(Measure())).left_us or 0
    true(HOUR_US < left <= lifetime_us(HOUR_US), "Touch gives a shorter time at once")
    lasting = sessions.new()
    equal((yield from lasting.ask(Append(b"1"), ttl_us=None)).ttl_us, None, "the time to live of a session without one")
    equal((yield from lasting.do(Measure())).left_us, None, "the time left of a session without one")
    yield from lasting.ask(Append(b"1"), ttl_us=5)
    equal((yield from lasting.ask(ReadNotes())).ttl_us, None, "the time to live after a call with one")
    equal((yield from lasting.ask(Touch(HOUR_US))).ttl_us, HOUR_US, "the time to live after Touch of a session without")
    true(
        ((yield from lasting.do(Measure())).left_us or 0) > HOUR_US, "Touch gives a session without one a time to live"
    )


def every_write_renews_a_session(sessions: Sessions) -> Script[None]:
    """Also one that found nothing to do."""
    session = sessions.new(ttl_us=HOUR_US)
    yield from session.do(Append(b"1"))
    for command in (Write((variable("a"),)), CompareAndSet(variable("a"), b"absent"), Remove(("absent",)), Touch()):
        yield from _renews(session, command)


def reads_renew_a_session_if_asked_to(sessions: Sessions) -> Script[None]:
    """And only then."""
    session = sessions.new(ttl_us=HOUR_US)
    yield from session.do(Write((variable("a"),)))
    before = (yield from session.do(Measure())).left_us or 0
    yield from session.until(Measure(), lambda one: (one.left_us or 0) < before - 50_000, "a read did not renew")
    for command in (Read(("a",)), ReadAll(), ReadNotes(), Read(("absent",))):
        yield from _renews(session, command, renew=True)


def _renews(session: Session, command: Command[object], *, renew: bool = False) -> Script[None]:
    """The time left is compared within one call, and again if the machine was too slow for the difference to show."""
    for _ in range(20):
        start = (yield from session.do(Measure())).left_us or 0
        fallen = yield from session.until(Measure(), _less_left(start - 50_000), "the time left fell")
        reply = yield from session.ask(command, Measure(), renew=renew)
        measured = reply.results[1]
        if isinstance(measured, Measured) and (measured.left_us or 0) > (fallen.left_us or 0):
            return
    raise ContractBroken(f"{command} did not give the session its whole time again: {measured} after {fallen}.")


def _less_left(bound_us: int) -> Callable[[Measured], bool]:
    return lambda measured: (measured.left_us or 0) < bound_us


def expired_sessions_are_gone(sessions: Sessions) -> Script[None]:
    """Wholly; what comes next begins a new one."""
    session = sessions.new(ttl_us=SHORT_US)
    commands = (
        Write((variable("a"), variable("b", b"1", HOUR_US))),
        Append(b"1"),
        WriteTask(b"{}"),
        CreateCheckpoint("c"),
    )
    stamp = (yield from session.ask(*commands)).stamp
    yield from session.until(Measure(), lambda measured: measured == Measured(), "a session expired")
    reply = yield from session.ask(ReadAll(), ReadNotes(), ReadTask(), ListCheckpoints(), Inspect(), renew=True)
    equal(reply, Reply(({}, [], None, [], Versions({}))), "what there is of an expired session")
    for command, result in ((Touch(), False), (Remove(("a",)), 0), (End(), False)):
        equal(
            (yield from session.ask(command)), Reply((result,)), f"the reply to {command} when the session had expired"
        )
    yield from session.refused(NotFound, RestoreCheckpoint("c", "undo"))
    reply = yield from session.ask(
        *(Append(b"2"), ReadNotes(), ReadAll(), ReadTask(), ListCheckpoints(), Measure()), ttl_us=HOUR_US, if_stamp=0
    )
    equal(reply.results[1:5], ([b"2"], {}, None, []), "what a session holds that was begun when it had expired")
    equal(reply.ttl_us, HOUR_US, "the time to live of a session that was begun when it had expired")
    true(reply.stamp > stamp, "the stamp rose when the session was begun anew")


def a_short_touch_ends_a_session_soon(sessions: Sessions) -> Script[None]:
    """Whatever its time was."""
    for ttl_us in (None, HOUR_US):
        session = sessions.new(ttl_us=ttl_us)
        yield from session.ask(Append(b"1"), WriteTask(b"{}"), Write((variable("a"),)))
        yield from session.do(Touch(SHORT_US))
        yield from session.until(Measure(), lambda measured: measured == Measured(), "a touched session expired")
        equal(
            (yield from session.ask(ReadNotes(), ReadAll(), ReadTask())).results, ([], {}, None), "what is left of it"
        )


def sweeping_removes_only_what_expired(sessions: Sessions) -> Script[None]:
    """Sessions, whole."""
    gone = [sessions.new(ttl_us=SHORT_US) for _ in range(5)]
    stays, lasts = sessions.new(ttl_us=HOUR_US), sessions.new()
    for session in (*gone, stays, lasts):
        yield from session.ask(
            Write((variable("a"), variable("b", b"1", SHORT_US))), Append(b"1"), CreateCheckpoint("c")
        )
    for session in gone:
        yield from session.until(Measure(), lambda measured: measured == Measured(), "a session expired")
    for limit in (2, 1_000):
        swept = yield Sweep(limit)
        true(isinstance(swept, int) and 0 <= swept <= limit, f"a sweep tells how many sessions it removed: {swept}")
    for session in gone:
        equal((yield from session.ask(ReadAll(), ReadNotes())), Reply(({}, [])), "what is left of a session swept")
    for session in (stays, lasts):
        equal(list((yield from session.do(ReadAll())))[:1], ["a"], "the variables of a session that did not expire")
        equal((yield from session.do(ReadNotes())), [b"1"], "the notes of a session that did not expire")
        equal(len((yield from session.do(ListCheckpoints()))), 1, "the checkpoints of a session that did not expire")


def a_tenant_is_forgotten_whole(sessions: Sessions) -> Script[None]:
    """And no other one, whatever their names have in common. Who writes later begins anew."""
    ids = ("s", "S", "s*", "{s}:values", "\u00e9" * 512)
    gone = [sessions.named("*", session_id) for session_id in ids]
    stay = [sessions.named(tenant, "s") for tenant in ("", "**", "*:", "a", "?", "[*]", "\\*", "\u00e9" * 100)]
    for session in (*gone, *stay):
        yield from session.ask(Write((variable("a", b"1", HOUR_US),)), Append(b"1"), CreateCheckpoint("c"))
    equal((yield ForgetTenant(gone[0].address.tenant)), len(gone), "how many sessions of the tenant were forgotten")
    for session in gone:
        equal(
            (yield from session.ask(ReadAll(), ReadNotes(), ListCheckpoints(), Measure())),
            Reply(({}, [], [], Measured())),
            "what is left of a session of a tenant that was forgotten",
        )
    for session in stay:
        found = yield from session.ask(ReadAll(), ReadNotes())
        equal([list(cast("dict[str, Found]", found.results[0])), found.results[1]], [["a"], [b"1"]], "others' sessions")
    equal((yield ForgetTenant(gone[0].address.tenant)), 0, "how many sessions were forgotten when there were none")
    yield from gone[0].do(Append(b"2"))
    equal((yield from gone[0].do(ReadNotes())), [b"2"], "the notes of a session begun after its tenant was forgotten")


CHECKS = (
    expired_variables_are_gone_for_every_call,
    what_expired_is_as_if_deleted,
    the_time_left_is_told,
    writes_replace_the_time_to_live,
    the_time_to_live_of_a_session_is_told,
    every_write_renews_a_session,
    reads_renew_a_session_if_asked_to,
    expired_sessions_are_gone,
    a_short_touch_ends_a_session_soon,
    sweeping_removes_only_what_expired,
    a_tenant_is_forgotten_whole,
)
