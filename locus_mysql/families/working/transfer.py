"""Sessions of working memory as a source and a target of transfers. A line is a session with its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...errors import CorruptCheckpoint, InvalidInput, StateTooLarge
from ...runtime.arguments import check_text
from ...runtime.checksummed_jsonl import Head
from ...runtime.database import Database
from ...runtime.sealing import fetching_keys, refuse_clear_tables
from ...runtime.transfer import RecordPage, TransferReport
from ..family import refuse_others
from .lines import FORMAT, head_line, session_line, session_of_content
from .moving import KeptSession, MovingOperations

T = TypeVar("T")

#: The bytes of lines after which a page ends.
_PAGE_BYTES = 4_000_000


class SessionTransfer:
    """Exports and imports sessions that MySQL keeps. See `Transfer`.

    Args:
        config: The options, with the tenant.
    """

    noun = "session"

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config

    def source(self, pattern: str = "*", **others: Any) -> SessionSource:
        """Return the source that reads the sessions whose ids match a glob."""
        refuse_others(others, "working memory")
        return SessionSource(self._config, pattern)

    def accepts(self, head: Head) -> bool:
        """See `Transfer.accepts`."""
        return head.format == FORMAT

    def target(self, head: Head, *, overwrite: bool = False) -> SessionTarget:
        """See `Transfer.target`."""
        if overwrite:
            raise InvalidInput("The file holds sessions, which are not replaced (--overwrite). End those first.")
        return SessionTarget(self._config)


class SessionSource:
    """Reads sessions in the order of their ids. Reading does not renew their times to live.

    Args:
        config: The options, with the tenant.
        pattern: Only sessions whose ids match this glob.
    """

    constants = False

    def __init__(self, config: MySQLConfig, pattern: str) -> None:
        self._config = config
        self._moving = MovingOperations(config)
        self._pattern = check_text(pattern, "Pattern")
        self.head = head_line(config.tenant, pattern)

    def position_of(self, content: Mapping[str, Any]) -> str:
        """Return the id of the session in a line."""
        return session_of_content(content).session_id

    async def count(self, database: Database) -> int:
        """Return the number of sessions."""
        return await self._run(database, self._moving.count(self._pattern))

    async def page(self, database: Database, after: str | None, limit: int) -> RecordPage:
        """Return the lines of some sessions."""
        page, size = RecordPage(), 0
        for session_id in await self._run(database, self._moving.ids(after or "", self._pattern, limit)):
            page.last = session_id
            try:
                kept = await self._run(database, self._moving.read(session_id))
            except CorruptCheckpoint as error:
                page.damaged.append(f"session {session_id!r} cannot be read: {error}")
                continue
            if kept is None:  # it ended meanwhile
                continue
            page.records.append(session_line(kept))
            size += len(page.records[-1])
            if size > _PAGE_BYTES:
                break
        return page

    async def _run(self, database: Database, operation: Operation[T]) -> T:
        steps = fetching_keys(operation, self._config)
        return await database.asynchronous.run(steps, self._moving.schema, self._config.ddl_mode)


class SessionTarget:
    """Writes sessions that do not exist, and compares the others.

    Args:
        config: The options, with the tenant.
    """

    constants = False

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config
        self._moving = MovingOperations(config)
        refuse_clear_tables(config, self._moving.schema)

    def read(self, content: Mapping[str, Any]) -> KeptSession:
        """Return the session in a line."""
        return session_of_content(content)

    async def write(self, database: Database, records: Sequence[KeptSession], report: TransferReport) -> None:
        """Write sessions, each in one transaction."""
        for kept in records:
            running = fetching_keys(self._moving.restore(kept), self._config)
            try:
                outcome = await database.asynchronous.run(running, self._moving.schema, self._config.ddl_mode)
            except StateTooLarge as error:
                report.leave_out(f"Session {kept.session_id!r} was left out: {error}")
                continue
            if outcome == "written":
                report.copied += 1
            elif outcome == "present":
                report.present += 1
            elif outcome == "expired":
                report.leave_out(f"Session {kept.session_id!r} was left out: it has expired.")
            else:
                report.differ(f"Session {kept.session_id!r} differs in the tables. End it to import this one.")
