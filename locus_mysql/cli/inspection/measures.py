"""Parses and formats times, ages and sizes. Pure functions."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..arguments import WrongArgument

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"(?:[0-9]+[smhdw])+")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

TIME_HELP = "3:12, 2026-11-22 03:12, an ISO time with its zone, or an age such as 90s, 15m, 2h30m, 3d"


def zone_of(name: str) -> tzinfo | None:
    """Return a time zone by its name; None for that of this machine.

    Raises:
        WrongArgument: There is no zone of this name.
    """
    if name.casefold() == "utc":
        return UTC
    if name.casefold() == "local":
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise WrongArgument(
            f"There is no time zone {name!r:.60}. Give UTC, local, or a name such as Europe/Berlin."
        ) from None


def moment_of(text: str, now: datetime, zone: tzinfo | None) -> datetime:
    """Return the moment that a text names.

    Args:
        text: A time of day, which means its last occurrence; a date, with or without a time; or an age.
        now: The current time.
        zone: The zone of a time that has none.

    Raises:
        WrongArgument: The text cannot be parsed.
    """
    text = text.strip()
    if _AGO.fullmatch(text):
        seconds = sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"([0-9]+)([smhdw])", text))
        return _before(now, seconds, text)
    try:
        if clock := _CLOCK.fullmatch(text):
            hour, minute, second, fraction = clock.groups(default="0")
            at = time(int(hour), int(minute), int(second), int(fraction.ljust(6, "0")))
            here = now.astimezone(zone)
            moment = _in_zone(datetime.combine(here.date(), at), zone)
            return moment if moment <= now else _in_zone(datetime.combine(here.date() - timedelta(days=1), at), zone)
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else _in_zone(found, zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise WrongArgument(f"The time {text[:60]!r} cannot be understood. Write {TIME_HELP}.") from None


def format_time(moment: datetime, zone: tzinfo | None) -> str:
    """Return a moment to the second, without its zone."""
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")


def zone_name(moment: datetime, zone: tzinfo | None) -> str:
    """Return the short name of a zone at a moment."""
    return moment.astimezone(zone).tzname() or ""


def age(moment: datetime, now: datetime) -> str:
    """Return the age of a moment in one unit: ``42s``, ``5m``, ``3h``, ``12d``, ``2y``."""
    seconds = (now - moment).total_seconds()
    if seconds < 0:
        return "0s"
    for unit, length, limit in (("s", 1, 60), ("m", 60, 3_600), ("h", 3_600, 86_400), ("d", 86_400, 63_072_000)):
        if seconds < limit:
            return f"{int(seconds // length)}{unit}"
    return f"{int(seconds // 31_536_000)}y"


def format_size(size_bytes: float) -> str:
    """Return bytes in decimal units: ``812 B``, ``4.5 KB``, ``120 MB``."""
    size = float(size_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if abs(size) < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or abs(size) >= 99.95 else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:,.1f} TB"


def size_of(text: str) -> int:
    """Return the number of bytes of a text such as ``10KB``.

    Raises:
        WrongArgument: The text cannot be parsed.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise WrongArgument(f"The size {text[:60]!r} cannot be understood. Write bytes, or such as 10KB, 1.5MB, 2GB.")
    number, unit = found.groups()
    return int(float(number) * 1_000 ** _POWERS[unit.casefold()])


def _before(now: datetime, seconds: int, text: str) -> datetime:
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        raise WrongArgument(f"{text[:60]} ago is before the year 1. Write a smaller age.") from None


def _in_zone(naive: datetime, zone: tzinfo | None) -> datetime:
    """Return a time in a zone; None is the zone of this machine."""
    return (naive.replace(tzinfo=zone) if zone is not None else naive.astimezone()).astimezone(UTC)
