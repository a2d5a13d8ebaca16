"""Decisions about repeating batches, their deadline, and the caller's errors."""

from __future__ import annotations

import pytest

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.drivers.failures import translate
from locus_mysql.drivers.interface import ConnectionLost, DriverError, PacketTooLarge, ServerError
from locus_mysql.engine import retry as retrying
from locus_mysql.engine.cluster.topology import LeadsToSecondary, NoPrimary, NotAMember
from locus_mysql.engine.failures import ERROR_CLASSES, GIVEN_UP, READ_ONLY, explain, may_pass
from locus_mysql.engine.operation import Duplicate, Outdated, Undone
from locus_mysql.engine.retry import LONGEST_WAIT_S, Backoff, Retry, next_page, unexpected
from locus_mysql.errors import (
    AuthenticationFailed,
    CorruptCheckpoint,
    DatabaseMissing,
    LocusMySQLError,
    PrivilegeMissing,
    ReadOnlyServer,
    SchemaMismatch,
    SetupError,
    StateTooLarge,
    Unavailable,
)

from .conftest import Clock

SECRET = "correct horse battery"


def config(**options: object) -> MySQLConfig:
    return MySQLConfig(user="ann", password=SECRET, host="db.example", database="app", **options)


LOST = ConnectionLost("Lost connection during query")
UNREACHED = ConnectionLost("Cannot connect to MySQL", connecting=True)


def test_an_error_of_a_class_that_passes_is_retried_and_of_any_other_raised_at_once() -> None:
    for one in ERROR_CLASSES:
        for number in one.numbers - READ_ONLY:
            error = ServerError(number, "what the server said")
            assert type(explain(error, config())) is one.kind
            if one.passes:
                assert Retry(config(), reached_before=False).wait_after(error) >= 0
            else:
                with pytest.raises(one.kind):
                    Retry(config(), reached_before=True).wait_after(error)


def test_an_error_belongs_to_one_class() -> None:
    numbers = [number for one in ERROR_CLASSES for number in one.numbers]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize(
    ("error", "hides"),
    [
        (LOST, True),
        *((ServerError(errno, "No space left on device"), True) for errno in (3, 1026, 1030, 1114, 1180, 1598)),
        (ServerError(1317, "Query execution was interrupted"), True),
        *((ServerError(1105, f"An error occurred in multi-table {verb}"), True) for verb in ("update", "delete")),
        # The other members of a group may have committed it: repeated without a check, a put failed on its own token.
        *((ServerError(errno, "replication hook"), True) for errno in sorted(GIVEN_UP)),
        (LeadsToSecondary("[3100] hook", gave_up=True), True),
        (UNREACHED, False),
        (ServerError(1213, "deadlock"), False),
        (ServerError(1290, "read-only"), False),
        (LeadsToSecondary("a takes no writes"), False),
    ],
)
def test_after_an_error_that_may_hide_a_commit_the_earlier_attempt_is_looked_for(
    error: DriverError, hides: bool
) -> None:
    retry = Retry(MySQLConfig(hosts=("a", "b")), reached_before=True)
    assert retry.wait_after(error) > 0
    for _ in range(2):  # also in the operation's next batch, during which the sent one may still arrive
        assert retry.fate_unknown is hides
        if hides:
            assert retry.wait_after(ServerError(1062, "duplicate")) == 0
        retry.begin_batch()


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (UNREACHED, Unavailable, r"db\.example"),
        (LeadsToSecondary("read_only is on"), ReadOnlyServer, "secondary of a group.*for writes"),
        (ServerError(1105, "Unknown error"), SetupError, "refused a statement"),
    ],
)
def test_an_error_of_a_server_that_was_never_reached_is_raised_at_once(
    error: DriverError, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        Retry(config(), reached_before=False).wait_after(error)


@pytest.mark.parametrize("errno", [1017, 1146])
def test_a_missing_table_of_the_server_s_own_is_a_lack_of_space_for_it(errno: int) -> None:
    error = ServerError(errno, "Table './tmp/#sql4f2_8_1' doesn't exist")
    assert Retry(config(), reached_before=True).wait_after(error) > 0
    with pytest.raises(Unavailable, match="#sql4f2_8_1"):
        Retry(config(retry_deadline_s=0), reached_before=True).wait_after(error)


def test_on_oceanbase_a_missing_table_is_waited_for_where_tables_may_be_created() -> None:
    number, message = OCEANBASE.error(1146, "Table 'app.locus_threads' doesn't exist", None)
    missing = ServerError(number, message)
    assert Retry(config(), reached_before=True, creates_tables=True).wait_after(missing) > 0
    with pytest.raises(SchemaMismatch, match="locus_threads"):
        Retry(config(retry_deadline_s=0), reached_before=True, creates_tables=True).wait_after(missing)
    with pytest.raises(SchemaMismatch, match="locus_threads"):
        Retry(config(), reached_before=True).wait_after(missing)


def test_an_error_of_the_client_library_is_not_reported_as_one_of_the_network() -> None:
    error = translate(TypeError("send() takes no keyword arguments"), Endpoint("db.example", 3306), connecting=True)
    assert isinstance(error, DriverError)
    message = str(explain(error, config()))
    assert "TypeError: send() takes no keyword arguments" in message
    assert "firewall" not in message


@pytest.mark.parametrize("errno", sorted(READ_ONLY))
def test_a_read_only_server_is_retried_only_with_several_hosts(errno: int) -> None:
    error = ServerError(errno, "read only")
    assert not may_pass(error, config())
    assert may_pass(error, MySQLConfig(hosts=("a", "b")))


READ_ONLY_ONE = ServerError(1290, "MySQL at b takes no writes")
RECOVERING_ONE = NotAMember("MySQL at a is no working member of its group")
NO_SUCH_DATABASE = ServerError(1049, "Unknown database 'app'")
OFFLINE = ServerError(3032, "The server is currently in offline mode")
NOT_LET_IN = ServerError(1045, "Access denied")


@pytest.mark.parametrize(
    ("reasons", "when_reached", "when_new", "explained", "words"),
    [
        ([READ_ONLY_ONE, READ_ONLY_ONE], True, True, ReadOnlyServer, "at b takes no writes"),
        ([READ_ONLY_ONE, READ_ONLY_ONE], True, True, ReadOnlyServer, "the group has elected one"),
        ([READ_ONLY_ONE, UNREACHED], True, True, Unavailable, "Cannot connect"),
        ([RECOVERING_ONE, READ_ONLY_ONE], True, True, Unavailable, "no working member"),
        ([RECOVERING_ONE, RECOVERING_ONE], True, True, Unavailable, "no working member"),
        ([UNREACHED, UNREACHED], True, False, Unavailable, "Cannot connect"),
        ([NOT_LET_IN, UNREACHED], True, False, Unavailable, "Access denied"),
        ([NOT_LET_IN, NOT_LET_IN], False, False, AuthenticationFailed, "user and password"),
        ([NO_SUCH_DATABASE, NO_SUCH_DATABASE], False, False, DatabaseMissing, "CREATE DATABASE"),
        ([NO_SUCH_DATABASE, READ_ONLY_ONE], True, True, Unavailable, "Unknown database"),
        ([OFFLINE, OFFLINE], True, True, Unavailable, "offline mode"),
        ([UNREACHED, OFFLINE], True, True, Unavailable, "offline mode"),
    ],
)
def test_without_a_primary_a_batch_waits_for_one_and_the_error_lists_each_server_s_reason(
    reasons: list[DriverError], when_reached: bool, when_new: bool, explained: type, words: str
) -> None:
    error, several = NoPrimary(reasons), MySQLConfig(user="ann", hosts=("a", "b"))
    for reached, waits in ((True, when_reached), (False, when_new)):
        retry = Retry(several, reached_before=reached)
        if waits:
            assert retry.wait_after(error) > 0
            assert not retry.fate_unknown
        else:
            with pytest.raises(explained, match=words):
                retry.wait_after(error)
    message = str(explain(error, several))
    assert type(explain(error, several)) is explained
    assert words in message
    assert "a:3306" in message
    assert "b:3306" in message


GUARD = ServerError(3141, "Invalid JSON text in argument 1 to function cast_as_json")


def test_a_guard_that_fails_after_a_lost_answer_may_have_met_the_first_try_so_that_is_looked_for_once() -> None:
    retry = Retry(config(), reached_before=True)
    retry.wait_after(LOST)
    assert retry.wait_after(GUARD) == 0
    with pytest.raises(Outdated):
        retry.wait_after(GUARD)


def test_a_batch_that_waited_past_the_deadline_for_its_turn_is_not_sent_again() -> None:
    clock = Clock()
    retry = Retry(config(retry_deadline_s=10), reached_before=True, clock=clock)
    retry.check_deadline()
    retry.wait_after(LOST)
    retry.check_deadline()
    clock.now += 11
    with pytest.raises(Unavailable):
        retry.check_deadline()


@pytest.mark.parametrize("entry", ["a-b", "x' for key 'p_checkpoints.named", ""])
def test_a_duplicate_names_its_key_for_any_entry_text(entry: str) -> None:
    words = f"Duplicate entry '{entry}' for key 'p_checkpoints.PRIMARY'"
    with pytest.raises(Duplicate) as caught:
        Retry(config(), reached_before=True).wait_after(ServerError(1062, words))
    assert (caught.value.table, caught.value.key) == ("p_checkpoints", "PRIMARY")


def test_a_lost_connection_is_tried_until_the_deadline() -> None:
    clock = Clock()
    retry = Retry(config(retry_deadline_s=10), reached_before=True, clock=clock)
    waits: list[float] = []

    def go_on() -> None:
        while True:
            waits.append(retry.wait_after(LOST))
            clock.now += waits[-1]

    with pytest.raises(Unavailable, match="10 s"):
        go_on()
    assert clock.now <= 1_010
    assert max(waits) <= LONGEST_WAIT_S
    assert len(waits) > 10


def test_waits_are_drawn_between_half_a_bound_and_the_bound_which_doubles_up_to_the_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds: list[tuple[float, float]] = []

    def draw(least: float, most: float) -> float:
        bounds.append((least, most))
        return most

    monkeypatch.setattr("random.uniform", draw)
    retry = Retry(config(retry_deadline_s=60), reached_before=True, clock=Clock())
    waits = [retry.wait_after(LOST) for _ in range(8)]
    assert waits == pytest.approx([0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0])
    assert [least for least, _ in bounds] == pytest.approx([wait / 2 for wait in waits])


@pytest.mark.parametrize(("errno", "kind"), [(1062, Duplicate), (3141, Outdated)])
def test_an_unexpected_conflict_is_explained_by_the_server_s_error(errno: int, kind: type[Undone]) -> None:
    with pytest.raises(kind) as caught:
        Retry(config(), reached_before=True).wait_after(ServerError(errno, "its words"))
    assert str(caught.value) == "its words"
    explained = unexpected(caught.value, config())
    assert isinstance(explained, SetupError)
    assert f"[{errno}] its words" in str(explained)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ServerError(1045, "Access denied for user 'ann'@'h' (using password: YES)"), AuthenticationFailed, "'ann'"),
        (ServerError(1049, "Unknown database 'app'"), DatabaseMissing, "CREATE DATABASE `app`"),
        (ServerError(1142, "INSERT command denied"), PrivilegeMissing, "GRANT SELECT"),
        (ServerError(1044, "Access denied to database"), PrivilegeMissing, "`app`"),
        (ServerError(1146, "Table 'app.locus_threads' doesn't exist"), SchemaMismatch, "schema"),
        (ServerError(1054, "Unknown column"), SchemaMismatch, "layout"),
        (ServerError(1290, "--read-only"), ReadOnlyServer, "primary"),
        (ServerError(1153, "Got a packet bigger"), StateTooLarge, "max_allowed_packet"),
        (ServerError(1213, "Deadlock"), Unavailable, "Try again"),
        (ServerError(1040, "Too many connections"), Unavailable, "Try again"),
        (ServerError(1317, "Query execution was interrupted"), Unavailable, "KILL QUERY"),
        (ServerError(1064, "Syntax"), SetupError, "1064"),
        (LOST, Unavailable, "db.example:3306"),
        (DriverError("odd"), LocusMySQLError, "odd"),
    ],
)
def test_every_error_gives_advice_and_no_password(error: DriverError, kind: type, words: str) -> None:
    explained = explain(error, config())
    assert type(explained) is kind
    assert words in str(explained)
    assert SECRET not in str(explained)
    assert SECRET not in repr(explained)
    assert ".." not in str(explained)


def test_the_error_of_a_packet_that_is_too_large_has_its_size_and_the_limit() -> None:
    explained = explain(PacketTooLarge(2_000_000, 1_048_576), config())
    assert type(explained) is StateTooLarge
    assert "2000000" in str(explained)
    assert "1048576" in str(explained)


def test_attempts_end_at_the_deadline_and_say_what_disagreed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 59.0, 61.0])
    monkeypatch.setattr(retrying.time, "monotonic", lambda: next(clock))
    backoff = Backoff("The items changed while they were read")
    backoff.check()
    backoff.pause()
    with pytest.raises(Unavailable, match=r"The items changed while they were read, at each of 3 attempts in 60 s\."):
        backoff.pause()


def test_attempts_begin_anew_with_each_page_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 100.0, 159.0, 200.0, 261.0])
    monkeypatch.setattr(retrying.time, "monotonic", lambda: next(clock))
    backoff = Backoff("Deleted rows were found again")
    for page in ([1, 2], [1, 2], [3]):
        backoff.compare(page)
    with pytest.raises(Unavailable, match="Deleted rows were found again, at each of 1 attempts"):
        backoff.compare([3])


def test_a_page_that_is_not_behind_the_one_before_is_an_error() -> None:
    assert next_page("", "a") == "a"
    assert next_page(("a", 2), ("b", 1)) == ("b", 1)
    for last in ("a", "A"):
        with pytest.raises(CorruptCheckpoint, match="out of order"):
            next_page("a", last)
