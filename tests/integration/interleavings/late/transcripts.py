"""Writes of transcripts whose packets arrive late, and what other processes do in the meantime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey, Write

from ..stage import Call
from .stores import Case, Stores

SESSION = TranscriptKey("test", "project", "session")


def added(side: Stores, number: int = 1, **options: Any) -> Call:
    return side.transcripts.begin("append", SESSION, [NewItem(number, str(number))], **options)


def listed(before: Any, items: Sequence[NewItem]) -> Any:
    return [*(before or []), *(item.content for item in items)]


def some_added(side: Stores) -> None:
    added(side, 1).finish()
    added(side, 2, fold=listed).finish()
    side.transcripts.append(SESSION._replace(part="sub"), [NewItem(1, "1")])


def two_written(side: Stores) -> Call:
    writes = [Write(SESSION, [NewItem(5, "5")]), Write(SESSION._replace(name="user"), (), Header(5))]
    return side.transcripts.begin("write", writes)


def one_removed(side: Stores) -> Call:
    return side.transcripts.begin("write", [Write(SESSION, remove=[1], needs="2")])


def one_deleted(side: Stores) -> Call:
    revision = side.transcripts.get(SESSION).revision
    return side.transcripts.begin("write", [Write(SESSION, delete=True, expected=revision)])


TRANSCRIPTS: dict[str, Case] = {
    "append to a new one": (None, added),
    "append": (some_added, lambda side: added(side, 3)),
    "append of a stored item": (some_added, added),
    "append with a fold": (some_added, lambda side: added(side, 3, fold=listed)),
    "append that is refused": (some_added, lambda side: added(side, 3, expected=0)),
    "append with a header": (some_added, lambda side: added(side, 3, header=Header({"a": 1}, "tag"))),
    "write of two": (some_added, two_written),
    "removal of an item": (some_added, one_removed),
    "deletion in a write": (some_added, one_deleted),
    "replace": (some_added, lambda side: side.transcripts.begin("replace", SESSION, "1", "other")),
    "replace of what is missing": (some_added, lambda side: side.transcripts.begin("replace", SESSION, "9", "other")),
    "pop": (some_added, lambda side: side.transcripts.begin("pop", SESSION)),
    "clear": (some_added, lambda side: side.transcripts.begin("clear", SESSION)),
    "clear of what is missing": (None, lambda side: side.transcripts.begin("clear", SESSION)),
    "delete": (some_added, lambda side: side.transcripts.begin("delete", SESSION)),
    "delete with parts": (some_added, lambda side: side.transcripts.begin("delete", SESSION, parts=True)),
    "delete of what is missing": (None, lambda side: side.transcripts.begin("delete", SESSION)),
    "delete_if that is refused": (some_added, lambda side: side.transcripts.begin("delete_if", SESSION, expected=1)),
    "forget_tenant": (some_added, lambda side: side.transcripts.begin("forget_tenant")),
}


def transcript_goes_on(side: Stores) -> None:
    added(side, 7, fold=listed).finish()


def transcript_made_anew(side: Stores) -> None:
    side.transcripts.delete(SESSION, parts=True)
    some_added(side)


def transcript_deleted(side: Stores) -> None:
    side.transcripts.delete(SESSION, parts=True)


def transcripts_left(side: Stores) -> Any:
    found = side.transcripts.list_transcripts("test", parts=True)
    return [
        (one.key, one.header.state, [item.content for item in side.transcripts.read(one.key).items]) for one in found
    ]


TRANSCRIPTS_MEANWHILE = (transcript_goes_on, transcript_made_anew, transcript_deleted)
