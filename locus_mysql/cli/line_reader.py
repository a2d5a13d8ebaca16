"""Reading lines, and writing what they say into the tables: `Import`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..config import MySQLConfig
from ..errors import InvalidInput
from ..integrations.counting import counted
from ..runtime.checksummed_jsonl import End, Head, content_of
from ..runtime.database import Database
from ..runtime.exporting import Tally, Target
from .arguments import tell

#: Items between two lines of progress.
PROGRESS_EVERY = 10_000

#: What is written at a time: at most so many items, and about so many bytes.
ITEMS_AT_ONCE, BYTES_AT_ONCE = 500, 4_000_000


class Import:
    """Writes what lines say, many at a time: all of them or none.

    Args:
        config: Where to, and whose it will be.
        target_of: What takes the lines behind a first one. Raises `InvalidInput` if nothing can.
        noun: What the lines hold, for messages.
    """

    def __init__(self, config: MySQLConfig, target_of: Callable[[Head], Target], noun: str = "item") -> None:
        self._config = config
        self._target_of = target_of
        self._noun = noun

    async def run(self, lines: Iterable[bytes]) -> Tally:
        """Write what the lines say; what became of it.

        Raises:
            InvalidInput: A line is damaged; the message has its number. Nothing of it, nor of the lines that would
                have been written together with it, was written.
        """
        done = Tally()
        async with Database(self._config) as database:
            read, number, size = 0, 0, 0
            batch: list[Any] = []
            target: Target | None = None
            ended = False
            for number, line in enumerate(lines, 1):
                with _numbered(number):
                    if ended:
                        raise InvalidInput("The file goes on behind its end.")
                    content = content_of(line, number, constants=target is not None and target.constants)
                    if isinstance(content, Head):
                        target = self._target_of(content)
                        continue
                    assert target is not None  # noqa: S101 - the first line is a head, or was refused
                    if isinstance(content, End):
                        ended = True
                        if content.items != read:
                            had = counted(content.items, self._noun)
                            raise InvalidInput(f"The file had {had} when it was written, and has {read}.")
                        continue
                    batch.append(target.read(content))
                read += 1
                size += len(line)
                if len(batch) == ITEMS_AT_ONCE or size >= BYTES_AT_ONCE:
                    await target.write(database, batch, done)
                    batch, size = [], 0
                if read % PROGRESS_EVERY == 0:
                    tell(f"{counted(read, self._noun)} …")
            with _numbered(number + 1):
                if not ended:
                    raise InvalidInput("The file ends without its last line; it was cut off.")
            if batch and target is not None:
                await target.write(database, batch, done)
        return done


@contextlib.contextmanager
def _numbered(number: int) -> Iterator[None]:
    """Put the number of a line into what is said of it."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"Line {number}: {error}") from None
