"""Google ADK: its session service for SQL databases, on aiomysql, and the one in memory."""

from __future__ import annotations

from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.genai.types import Content, Part

from locus_mysql import MySQLConfig
from locus_mysql.integrations.google_adk import AdkSessionService

from .contestants import CONVERSATION, Contestant, Entrant, Framework, Turn

NAMES = {"app_name": "bench", "user_id": "ada"}
EVENTS_PER_TURN = 2


class Service(Contestant):
    """A `BaseSessionService`."""

    def __init__(self, config: MySQLConfig, service: BaseSessionService) -> None:
        super().__init__(config)
        self._service = service
        self._session: Session | None = None

    async def append(self, turn: Turn) -> None:
        """See `Contestant.append`."""
        if self._session is None:
            self._session = await self._service.create_session(**NAMES, session_id=CONVERSATION)
        for event in events(turn):
            await self._service.append_event(self._session, event)

    async def load(self) -> int:
        """See `Contestant.load`."""
        session = await self._service.get_session(**NAMES, session_id=CONVERSATION)
        return 0 if session is None else len(session.events) // EVENTS_PER_TURN

    async def close(self) -> None:
        """See `Contestant.close`."""
        if close := getattr(self._service, "close", None):
            await close()


class InMemory(Service):
    """ADK's own service in memory."""

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config, InMemorySessionService())

    def stored_bytes(self) -> int:
        """See `Contestant.stored_bytes`: the JSON of the session."""
        return 0 if self._session is None else len(self._session.model_dump_json(exclude_none=True))


def own_service(config: MySQLConfig) -> Service:
    """Return ADK's own service for SQL databases."""
    from google.adk.sessions.database_session_service import DatabaseSessionService
    from sqlalchemy.engine import URL

    url = URL.create(
        "mysql+aiomysql", config.user, config.password.get_secret_value(), config.host, config.port, config.database
    )
    service: Any = DatabaseSessionService(url.render_as_string(hide_password=False))
    return Service(config, service)


def events(turn: Turn) -> list[Event]:
    """Return a turn as events: the user's message, and the answer with a change of state."""
    said = Event(
        id=f"event-{turn.number}-0",
        invocation_id=f"e-{turn.number}",
        author="user",
        timestamp=1_763_900_000.0 + 2 * turn.number,
        content=Content(role="user", parts=[Part(text=turn.question)]),
    )
    answered = Event(
        id=f"event-{turn.number}-1",
        invocation_id=f"e-{turn.number}",
        author="agent",
        timestamp=1_763_900_001.0 + 2 * turn.number,
        content=Content(role="model", parts=[Part(text=turn.answer)]),
        **{"state": {"turns": turn.number + 1}},
    )
    return [said, answered]


FRAMEWORK = Framework(
    title="Google ADK 2.13.0",
    entrants=(
        Entrant("locus-mysql, aiomysql", lambda config: Service(config, AdkSessionService(config))),
        Entrant(
            "locus-mysql, mysql-connector", lambda config: Service(config, AdkSessionService(config)), "mysql-connector"
        ),
        Entrant("DatabaseSessionService, aiomysql", own_service),
        Entrant("InMemorySessionService", InMemory),
    ),
    remark="An append is two calls, one for each event. DatabaseSessionService keeps no checksums and no tenants.",
)
