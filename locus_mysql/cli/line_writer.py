"""Writing what a source has as lines, to a file that may be there in part already: `Export`."""

from __future__ import annotations

from typing import Any, Protocol

from ..config import MySQLConfig
from ..errors import InvalidInput, UsageError
from ..integrations.counting import counted
from ..runtime.checksummed_jsonl import End, content_of, end_line
from ..runtime.database import Database
from ..runtime.exporting import Source
from .arguments import tell
from .part_file import PartFile

#: Items between two lines of progress.
PROGRESS_EVERY = 10_000

#: What is read at a time: at most so many items, and about so many bytes.
ITEMS_AT_ONCE, BYTES_AT_ONCE = 500, 4_000_000


class Output(Protocol):
    """Where an export is written to."""

    def write(self, data: bytes) -> None:
        """Add to it."""


class Export:
    """Writes lines, in the order of their source.

    Args:
        config: Where from.
        source: What is read.
        output: Where to.
        noun: What the source has, for messages.
    """

    def __init__(self, config: MySQLConfig, source: Source, output: Output, noun: str = "item") -> None:
        self._config = config
        self._source = source
        self._output = output
        self._noun = noun
        self._begun = False
        self.items = 0

    def go_on(self, file: PartFile) -> Any:
        """Keep what is whole of a file that is there; the position of what stands last in it.

        Raises:
            UsageError: It is of another export.
        """
        size = 0
        last: Any = None
        lines = iter(file.lines())
        for number, line in enumerate(lines, 1):
            if number == 1 and line.endswith(b"\n") and line != self._source.head:
                if next(lines, None) is None:  # that one failed before it wrote an item
                    break
                raise UsageError(f"{file.part} was left by another export, of other items. Remove it.")
            try:
                content = content_of(line, number, constants=self._source.constants)
                if isinstance(content, End):
                    break
                if isinstance(content, dict):
                    last = self._source.position_of(content)
                    self.items += 1
            except InvalidInput:  # it was being written when the process was killed
                break
            size += len(line)
        file.cut(size)
        self._begun = size > 0
        if self.items:
            tell(f"Going on with {file.part}, behind {counted(self.items, self._noun)}.")
        return last

    async def run(self, after: Any = None) -> bool:
        """Write what stands behind a position, and the last line; False if something could not be read.

        Nothing is written before the tables were seen to be there.
        """
        complete, limit = True, 100
        async with Database(self._config) as database:
            count = await self._source.count(database)
            if not self._begun:
                self._output.write(self._source.head)
            while True:
                page = await self._source.page(database, after, limit)
                if page.last is None:
                    break
                for damage in page.damaged:
                    tell(f"Left out: {damage}")
                    complete = False
                self._output.write(b"".join(page.lines))
                if self.items // PROGRESS_EVERY < (self.items + len(page.lines)) // PROGRESS_EVERY:
                    tell(f"{self.items + len(page.lines):,} of {counted(count, self._noun)} …")
                self.items += len(page.lines)
                after = page.last
                size = sum(map(len, page.lines))
                limit = max(1, limit // 4) if size > BYTES_AT_ONCE else min(ITEMS_AT_ONCE, 2 * limit)
        self._output.write(end_line(self.items))
        return complete
