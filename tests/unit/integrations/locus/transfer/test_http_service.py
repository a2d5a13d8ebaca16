"""An endless list of a source ends in an error, and repeated entries are yielded once."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest
from locus.memory.backends.http import HTTPCheckpointer

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.integrations.locus.transfer.http_service import HTTPSource
from locus_mysql.transfer.page_progress import MAX_PAGES_WITHOUT_NEW


class Service(HTTPSource):
    """A source with scripted answers."""

    def __init__(self, answers: Any) -> None:
        super().__init__(HTTPCheckpointer("http://localhost"), owned=False)
        self._lists_threads = True
        self._answers = iter(answers)
        self.asked = 0

    async def _ask(self, path: str, **query: Any) -> Any:
        self.asked += 1
        return next(self._answers)


def page(cursor: str | None, *threads: str) -> dict[str, Any]:
    return {"threads": [{"thread_id": one} for one in threads], "cursor": cursor}


def listed(service: Service) -> list[str]:
    async def read() -> list[str]:
        return [one async for one in service.threads("*")]

    return asyncio.run(read())


def test_pages_are_read_to_the_last_and_entries_given_once() -> None:
    service = Service([page("1", "a", "b"), page("2"), page("3", "b", "c"), page(None, "d")])
    assert listed(service) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("cursors", [["1"], ["1", "2"], [""]])
def test_a_cursor_that_comes_again_ends_it(cursors: list[str]) -> None:
    service = Service(page(cursors[at % len(cursors)], f"t{at}") for at in count())
    with pytest.raises(CorruptCheckpoint, match="cursor of an earlier page"):
        listed(service)
    assert service.asked == len(cursors) + 1


@pytest.mark.parametrize("threads", [(), ("a", "b")])
def test_pages_with_nothing_new_end_it(threads: tuple[str, ...]) -> None:
    service = Service(page(str(at), *threads) for at in count())
    with pytest.raises(CorruptCheckpoint, match="nothing new"):
        listed(service)
    assert service.asked <= MAX_PAGES_WITHOUT_NEW + 1


def test_a_history_that_repeats_itself_ends_too() -> None:
    one = {"checkpoint_id": "c", "created_at": "2026-01-01T00:00:00Z", "metadata": {}, "parent_id": None}
    service = Service({"checkpoints": [one], "cursor": "same"} for _ in count())
    with pytest.raises(CorruptCheckpoint, match="/threads/t/history"):
        asyncio.run(service.checkpoints("t"))


@pytest.mark.parametrize("answer", [[], {"threads": None}, {"threads": ["t"]}, {"threads": [{"thread_id": 1}]}, "t"])
def test_an_answer_that_is_not_a_list_is_reported(answer: Any) -> None:
    with pytest.raises(CorruptCheckpoint, match="something else than a list"):
        listed(Service([answer]))
