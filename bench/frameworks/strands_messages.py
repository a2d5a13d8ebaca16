"""Strands Agents: messages in a session repository, beside the framework's own in files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from strands.session.file_session_manager import FileSessionManager
from strands.session.session_repository import SessionRepository
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from locus_mysql import MySQLConfig
from locus_mysql.integrations.strands import StrandsSessionRepository

from .contestants import CONVERSATION, Contestant, Entrant, Framework, Turn
from .strands import AGENT, MESSAGES_PER_TURN, bytes_of_files, messages


class Messages(Contestant):
    """A `SessionRepository`, called as `RepositorySessionManager` does: two messages, and the agent's state."""

    def __init__(self, config: MySQLConfig, repository: SessionRepository) -> None:
        super().__init__(config)
        self._repository = repository

    async def append(self, turn: Turn) -> None:
        """See `Contestant.append`."""
        if not turn.number:
            self._repository.create_session(Session(CONVERSATION, SessionType.AGENT))
            self._repository.create_agent(CONVERSATION, SessionAgent(AGENT, {}, {}))
        for index, message in enumerate(messages(turn)):
            stored = SessionMessage.from_message(message, MESSAGES_PER_TURN * turn.number + index)
            self._repository.create_message(CONVERSATION, AGENT, stored)
        self._repository.update_agent(CONVERSATION, SessionAgent(AGENT, {"turns": turn.number}, {}))

    async def load(self) -> int:
        """See `Contestant.load`."""
        return len(self._repository.list_messages(CONVERSATION, AGENT)) // MESSAGES_PER_TURN

    async def close(self) -> None:
        """See `Contestant.close`."""
        if isinstance(self._repository, StrandsSessionRepository):
            self._repository.close()


class MessagesInFiles(Messages):
    """The framework's repository in files, one for each message, which it does not flush."""

    def __init__(self, config: MySQLConfig) -> None:
        self._folder = tempfile.TemporaryDirectory()
        super().__init__(config, FileSessionManager("another", storage_dir=self._folder.name))

    async def close(self) -> None:
        """See `Contestant.close`."""
        self._folder.cleanup()

    def stored_bytes(self) -> int:
        """See `Contestant.stored_bytes`."""
        return bytes_of_files(Path(self._folder.name))


FRAMEWORK = Framework(
    title="Strands Agents 1.62.0, messages",
    entrants=(
        Entrant("locus-mysql, pymysql", lambda config: Messages(config, StrandsSessionRepository(config)), "pymysql"),
        Entrant(
            "locus-mysql, mysql-connector",
            lambda config: Messages(config, StrandsSessionRepository(config)),
            "mysql-connector",
        ),
        Entrant("FileSessionManager, not flushed", MessagesInFiles),
    ),
    remark="An append is three calls: two messages, and the state of the agent. A repository is blocking.",
)
