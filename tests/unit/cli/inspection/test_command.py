"""Formatting and parsing of times, ages and sizes."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.cli.inspection.command import Clock, format_size, pages, size_of
from locus_mysql.engine import retry
from locus_mysql.errors import InvalidInput, Unavailable
from locus_mysql.families.inspection.records import Page

NOW = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)


def clock(zone: str = "UTC") -> Clock:
    return Clock(Namespace(tz=zone), NOW)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("3:12", datetime(2026, 11, 22, 3, 12, tzinfo=UTC)),
        ("03:12:30", datetime(2026, 11, 22, 3, 12, 30, tzinfo=UTC)),
        ("03:12:30.25", datetime(2026, 11, 22, 3, 12, 30, 250_000, tzinfo=UTC)),
        ("23:59", datetime(2026, 11, 21, 23, 59, tzinfo=UTC)),  # the most recent time of this clock time
        ("2026-11-20", datetime(2026, 11, 20, tzinfo=UTC)),
        ("2026-11-20 03:12", datetime(2026, 11, 20, 3, 12, tzinfo=UTC)),
        ("2026-11-20T03:12:00+02:00", datetime(2026, 11, 20, 1, 12, tzinfo=UTC)),
        ("90s", NOW - timedelta(seconds=90)),
        ("2h30m", NOW - timedelta(hours=2, minutes=30)),
        ("3d", NOW - timedelta(days=3)),
        (" 1w ", NOW - timedelta(weeks=1)),
    ],
)
def test_a_time_can_be_written_in_several_formats(text: str, moment: datetime) -> None:
    assert clock().moment(text) == moment


def test_a_time_without_a_zone_is_in_the_requested_zone() -> None:
    berlin = clock("Europe/Berlin")
    assert berlin.moment("3:12") == datetime(2026, 11, 22, 2, 12, tzinfo=UTC)
    assert berlin.moment("2026-07-01 12:00") == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert berlin.time_text(NOW) == "2026-11-22 09:30:00"


def test_the_local_zone_is_that_of_this_machine() -> None:
    local = clock("local")
    assert local.moment(local.time_text(NOW)) == NOW


@pytest.mark.parametrize("text", ["", "noon", "25:00", "3:99", "2026-13-01", "-5m", "5y", "99999999999999d", "\x1b[2J"])
def test_an_invalid_time_is_refused_with_valid_examples(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        clock().moment(text)
    assert "Write" in str(refused.value)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("name", ["UTC", "utc", "local", "Europe/Berlin"])
def test_a_zone_is_found_by_name(name: str) -> None:
    assert clock(name).time_text(NOW).startswith("2026-11-2")


@pytest.mark.parametrize("name", ["Mars/Base", "", "../../etc/passwd", "/etc/passwd"])
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="There is no time zone"):
        clock(name)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (3_599, "59m"),
        (7_200, "2h"),
        (86_400, "1d"),
        (99_999_999, "3y"),
    ],
)
def test_an_age_is_written_in_one_unit(seconds: float, expected: str) -> None:
    assert clock().age(NOW - timedelta(seconds=seconds)) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 KB"),
        (99_949, "99.9 KB"),
        (123_456, "123 KB"),
        (999_600, "1.0 MB"),
        (5_400_000_000, "5.4 GB"),
        (12e15, "12,000.0 TB"),
    ],
)
def test_a_size_is_written_in_decimal_units(size: float, expected: str) -> None:
    assert format_size(size) == expected


@given(st.integers(0, 10**15))
def test_a_written_size_can_be_parsed(size: int) -> None:
    expected = format_size(size).replace(",", "")
    assert size_of(expected) == pytest.approx(size, rel=0.06)


@pytest.mark.parametrize("text", ["", "much", "10XB", "-5", "1e9", "ten KB"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be understood"):
        size_of(text)


async def test_pages_follow_each_other_until_one_has_no_cursor() -> None:
    stored = {None: Page([1], "a"), "a": Page([2], "b"), "b": Page([3], None)}

    async def read(cursor: str | None) -> Page[int]:
        return stored[cursor]

    assert [page.items async for page in pages(read)] == [[1], [2], [3]]
    assert [page.items async for page in pages(read, "b")] == [[3]]


async def test_a_page_that_names_itself_as_the_next_one_ends_the_list_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "GIVE_UP_AFTER_S", 0.0)

    async def read(cursor: str | None) -> Page[int]:
        return Page([1], "a")

    with pytest.raises(Unavailable, match="A page of a list named itself as the next one"):
        async for _ in pages(read):
            pass
