"""memU's databases of both sides with one interface."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from pydantic import BaseModel

from locus_mysql.integrations.memu import AsyncMemuDatabase, AsyncRecallDatabase, MemuDatabase, RecallDatabase

from ...conftest import Opening

Make: TypeAlias = Callable[..., Any]

__all__ = ["Make", "UserModel"]


class UserModel(BaseModel):
    """A scope of two fields, one of which is required."""

    user_id: str
    agent_id: str | None = None


ADA, BOB = {"user_id": "ada"}, {"user_id": "bob"}


class Awaited:
    """A repository, view or database of either side: every method is awaited here."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.wrapped, name)
        if not callable(member):
            return Awaited(member)

        async def call(*args: Any, **options: Any) -> Any:
            outcome = member(*args, **options)
            return await outcome if inspect.isawaitable(outcome) else outcome

        return call


class AnyMemu(Awaited):
    """A database with shortcuts for operations that tests use often."""

    async def remember(self, summary: str, user: dict[str, Any], embedding: Any = (1.0, 0.0), **options: Any) -> Any:
        given = {"memory_type": "profile", "embedding": list(embedding) if embedding is not None else None, **options}
        return await self.memory_item_repo.create_item(summary=summary, user_data=user, **given)

    async def categorize(self, name: str, user: dict[str, Any], **options: Any) -> Any:
        given = {"description": "about it", "embedding": [1.0], **options}
        return await self.memory_category_repo.get_or_create_category(name=name, user_data=user, **given)

    async def link(self, item: Any, category: Any, user: dict[str, Any]) -> Any:
        return await self.category_item_repo.link_item_category(item.id, category.id, user)

    async def resource(self, url: str, user: dict[str, Any], **options: Any) -> Any:
        given = {"modality": "text", "local_path": "/x", "caption": None, "embedding": None, **options}
        return await self.resource_repo.create_resource(url=url, user_data=user, **given)


class AnyRecall(Awaited):
    """A database with memu-cli's protocol, with shortcuts for operations that tests use often."""

    async def file(self, name: str, user: dict[str, Any], **options: Any) -> Any:
        given = {"description": "about it", "embedding": [1.0], **options}
        return await self.recall_file_repo.get_or_create_recall_file(name=name, user_data=user, **given)

    async def segment(self, file_id: str, text: str, user: dict[str, Any], **options: Any) -> Any:
        given = {"embedding": [1.0, 0.0], **options}
        return await self.recall_file_segment_repo.create_segment(
            recall_file_id=file_id, text=text, user_data=user, **given
        )

    async def resource(self, url: str, user: dict[str, Any], **options: Any) -> Any:
        given = {"local_path": "/x", "caption": None, "embedding": None, "track": "workspace", **options}
        return await self.resource_repo.create_resource(url=url, user_data=user, **given)


@pytest.fixture
def make_memu(opening: Opening, side: str) -> Make:
    """Return ``make_memu(user_model=…, **options)``: another database on the test's schema, like another process's."""

    def make(user_model: type[BaseModel] = UserModel, **options: Any) -> AnyMemu:
        return AnyMemu(opening(side, (AsyncMemuDatabase, MemuDatabase), user_model=user_model, **options).store)

    return make


@pytest.fixture
def memu(make_memu: Make) -> AnyMemu:
    database: AnyMemu = make_memu()
    return database


@pytest.fixture
def make_recall(opening: Opening, side: str) -> Make:
    """Return ``make_recall(user_model=…, **options)``: another database with memu-cli's protocol on the schema."""

    def make(user_model: type[BaseModel] = UserModel, **options: Any) -> AnyRecall:
        return AnyRecall(opening(side, (AsyncRecallDatabase, RecallDatabase), user_model=user_model, **options).store)

    return make


@pytest.fixture
def recall(make_recall: Make) -> AnyRecall:
    database: AnyRecall = make_recall()
    return database
