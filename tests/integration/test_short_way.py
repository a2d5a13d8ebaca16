"""A warm save makes few calls on its way to the driver."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import locus_mysql
from locus_mysql import SyncCheckpointStore

from .conftest import MakeConfig

PACKAGE = Path(locus_mysql.__file__).parent

#: Limits of the calls of the package's functions above the driver, and of the files of the engine and the runtime that
#: have them. A generator that is resumed counts as a call.
MOST_CALLS, MOST_FILES = 100, 8

#: Saves before the count, and counted ones: once a second, one of them looks for OpenTelemetry.
WARM_UP, COUNTED = 40, 5


def called_by(work: Callable[[], object]) -> list[str]:
    """Return the file, within the package and outside the drivers, of each function that is called."""
    files: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE) and not path.is_relative_to(PACKAGE / "drivers"):
            files.append(path.relative_to(PACKAGE).as_posix())

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return files


def test_a_warm_save_takes_the_short_way_to_the_driver(make_config: MakeConfig) -> None:
    messages = [{"role": "user", "content": f"message {number}"} for number in range(WARM_UP + COUNTED)]
    with SyncCheckpointStore(make_config(driver="pymysql")) as store:
        for number in range(WARM_UP):
            store.save("thread", {"n": number, "messages": messages[: number + 1]})
        counted = [
            called_by(lambda number=number: store.save("thread", {"n": number, "messages": messages[: number + 1]}))  # type: ignore[misc]
            for number in range(WARM_UP, WARM_UP + COUNTED)
        ]
    calls = min(counted, key=len)
    assert len(calls) <= MOST_CALLS
    files = {file for file in calls if file.startswith(("engine/", "runtime/"))}
    assert len(files) <= MOST_FILES, sorted(files)
