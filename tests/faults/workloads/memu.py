"""memU's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from locus_mysql.integrations.memu import AsyncMemuDatabase, MemuDatabase

from ...integration.integrations.memu.conftest import AnyMemu
from .workload import Call, Stores, Workload


class User(BaseModel):
    """The scope of records."""

    user_id: str


ADA = {"user_id": "ada"}


class Memu(Workload):
    """Items, categories and relations."""

    title, family = "memU's tables", "memu"
    stores = Stores(
        lambda config: AsyncMemuDatabase(config, user_model=User),
        lambda config: MemuDatabase(config, user_model=User),
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.memu = AnyMemu(self.store.store)

    def calls(self) -> Sequence[Call]:
        async def remember() -> Any:
            self.item = await self.memu.remember("Ada likes tea", ADA, reinforce=True)
            return self.item.summary

        async def reinforce() -> Any:
            return (await self.memu.remember("Ada likes tea", ADA, reinforce=True)).extra["reinforcement_count"]

        async def categorize() -> Any:
            self.category = await self.memu.categorize("drinks", ADA)
            return self.category.name

        async def link() -> None:
            await self.memu.link(self.item, self.category, ADA)

        async def update() -> Any:
            changed = await self.memu.memory_item_repo.update_item(item_id=self.item.id, summary="Ada likes coffee")
            return changed.summary

        async def resource() -> Any:
            return (await self.memu.resource("u", ADA)).url

        return [
            remember,
            reinforce,
            categorize,
            link,
            update,
            resource,
            lambda: self.memu.category_item_repo.unlink_item_category(self.item.id, self.category.id),
        ]

    async def stored(self) -> Any:
        items = [(one.summary, one.extra.get("reinforcement_count")) for one in (await self.memu.items.copy()).values()]
        categories = [one.name for one in (await self.memu.memory_category_repo.list_categories()).values()]
        resources = [one.url for one in (await self.memu.resource_repo.list_resources()).values()]
        return sorted(items), categories, resources, len(await self.memu.category_item_repo.list_relations())
