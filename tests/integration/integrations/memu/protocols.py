"""The protocols of memU 1.5.1 as data: their attributes, methods and parameters.

memU itself needs Python 3.13 and Rust. Where it is installed, its own protocols are checked too.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class ResourceRepo(Protocol):
    resources: Any

    def list_resources(self, where: Any = None) -> Any: ...
    def clear_resources(self, where: Any = None) -> Any: ...
    def create_resource(
        self, *, url: Any, modality: Any, local_path: Any, caption: Any, embedding: Any, user_data: Any
    ) -> Any: ...
    def load_existing(self) -> Any: ...


@runtime_checkable
class MemoryItemRepo(Protocol):
    items: Any

    def get_item(self, item_id: Any) -> Any: ...
    def list_items(self, where: Any = None) -> Any: ...
    def clear_items(self, where: Any = None) -> Any: ...
    def create_item(
        self,
        *,
        resource_id: Any,
        memory_type: Any,
        summary: Any,
        embedding: Any,
        user_data: Any,
        reinforce: bool = False,
        tool_record: Any = None,
    ) -> Any: ...
    def update_item(
        self,
        *,
        item_id: Any,
        memory_type: Any = None,
        summary: Any = None,
        embedding: Any = None,
        extra: Any = None,
        tool_record: Any = None,
    ) -> Any: ...
    def delete_item(self, item_id: Any) -> Any: ...
    def list_items_by_ref_ids(self, ref_ids: Any, where: Any = None) -> Any: ...
    def vector_search_items(self, query_vec: Any, top_k: Any, where: Any = None) -> Any: ...
    def load_existing(self) -> Any: ...


@runtime_checkable
class MemoryCategoryRepo(Protocol):
    categories: Any

    def list_categories(self, where: Any = None) -> Any: ...
    def clear_categories(self, where: Any = None) -> Any: ...
    def get_or_create_category(self, *, name: Any, description: Any, embedding: Any, user_data: Any) -> Any: ...
    def update_category(
        self, *, category_id: Any, name: Any = None, description: Any = None, embedding: Any = None, summary: Any = None
    ) -> Any: ...
    def load_existing(self) -> Any: ...


@runtime_checkable
class CategoryItemRepo(Protocol):
    relations: Any

    def list_relations(self, where: Any = None) -> Any: ...
    def link_item_category(self, item_id: Any, cat_id: Any, user_data: Any) -> Any: ...
    def unlink_item_category(self, item_id: Any, cat_id: Any) -> Any: ...
    def get_item_categories(self, item_id: Any) -> Any: ...
    def load_existing(self) -> Any: ...


@runtime_checkable
class Database(Protocol):
    resource_repo: Any
    memory_category_repo: Any
    memory_item_repo: Any
    category_item_repo: Any
    resources: Any
    items: Any
    categories: Any
    relations: Any

    def close(self) -> None: ...


#: The protocols, by the database's attributes that implement them; the database's own protocol by "".
PROTOCOLS: dict[str, Any] = {
    "": Database,
    "resource_repo": ResourceRepo,
    "memory_item_repo": MemoryItemRepo,
    "memory_category_repo": MemoryCategoryRepo,
    "category_item_repo": CategoryItemRepo,
}


def known() -> list[dict[str, Any]]:
    """Return these protocols, and memU's own if memU is installed. memu-cli has a package of the same name."""
    interfaces = None if find_spec("memu") is None else import_module("memu.database.interfaces")
    if not hasattr(interfaces, "MemoryItemRepo"):
        return [PROTOCOLS]
    return [PROTOCOLS, {name: getattr(interfaces, protocol.__name__) for name, protocol in PROTOCOLS.items()}]
