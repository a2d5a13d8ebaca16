"""The session repository of Strands Agents: `StrandsSessionRepository`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar, Unpack

from pydantic import SecretStr
from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException

from ...config import Keywords, MySQLConfig
from ...errors import InvalidInput, LocusMySQLError
from ...runtime.database import Database, share
from ...runtime.stores import SyncStore, blocking
from .session_operations import SessionOperations

T = TypeVar("T")


class StrandsSessionRepository(SyncStore[SessionOperations], SessionRepository):
    """Keeps sessions, agents and messages in MySQL: a `strands.session.session_repository.SessionRepository`.

    Blocking, as the contract is. Safe to share between threads and session managers.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to sessions.

    Example:
        ```python
        with StrandsSessionRepository("mysql://user:password@localhost/app", tenant="acme") as repository:
            manager = RepositorySessionManager("customer-7", repository)
            assert repository.read_session("customer-7") == manager.session
        ```
    """

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Database | None = None, **options: Unpack[Keywords]
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(SessionOperations(config), database, owned=owned)

    @blocking(SessionOperations.create_session)
    def create_session(self) -> None: ...
    @blocking(SessionOperations.read_session)
    def read_session(self) -> None: ...
    @blocking(SessionOperations.delete_session)
    def delete_session(self) -> None: ...
    @blocking(SessionOperations.create_agent)
    def create_agent(self) -> None: ...
    @blocking(SessionOperations.read_agent)
    def read_agent(self) -> None: ...
    @blocking(SessionOperations.update_agent)
    def update_agent(self) -> None: ...
    @blocking(SessionOperations.create_message)
    def create_message(self) -> None: ...
    @blocking(SessionOperations.read_message)
    def read_message(self) -> None: ...
    @blocking(SessionOperations.update_message)
    def update_message(self) -> None: ...
    @blocking(SessionOperations.list_messages)
    def list_messages(self) -> None: ...
    @blocking(SessionOperations.create_multi_agent)
    def create_multi_agent(self) -> None: ...
    @blocking(SessionOperations.read_multi_agent)
    def read_multi_agent(self) -> None: ...
    @blocking(SessionOperations.update_multi_agent)
    def update_multi_agent(self) -> None: ...

    def _run(self, operation: Generator[Any, Any, T]) -> T:
        try:
            return super()._run(operation)
        except InvalidInput:
            raise
        except LocusMySQLError as error:
            raise SessionException(str(error)) from error
