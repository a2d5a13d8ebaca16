"""The repositories of both of memU's protocols, and their views, which look like memU's dictionaries and lists.

A repository has the methods of a class of operations, blocking or awaited; a view queries the database at each access.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from functools import cache
from inspect import getmembers, isgeneratorfunction
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ...engine.operation import Operation, named
from ...runtime.stores import awaited_method, blocking_method
from .operations import MemuStore, RecordOperations, Where
from .records import BaseRecord

R = TypeVar("R", bound=BaseRecord)


class _OfRecords(Generic[R]):
    """Base of repositories and views of the records of one kind.

    Args:
        operations: The operations on the records.
        run: Runs an operation; returns its result, or an awaitable.
    """

    def __init__(self, operations: RecordOperations[R], run: Callable[[Operation[Any]], Any]) -> None:
        self._operations = operations
        self._run = run

    def __repr__(self) -> str:
        return f"<{self._operations.role} in the database>"


class Repository(_OfRecords[Any]):
    """A repository; `repository` makes it with its methods."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def repository(kind: type[RecordOperations[Any]], store: MemuStore, run: Any, *, awaits: bool) -> Repository:
    """Return the repository of one kind of records.

    Args:
        kind: The class of the operations. The public generators that it adds to `RecordOperations` become methods.
        store: The store.
        run: Runs an operation; returns its result, or an awaitable.
        awaits: Whether methods are awaited.
    """
    operations = kind(store)
    made = _repository_class(kind, awaits)(operations, run)  # type: ignore[arg-type]  # a class is hashable
    view = AsyncRecordView if awaits else RecordListView if kind.is_listed else RecordView
    setattr(made, kind.view, view(operations, run))
    return made


@cache
def _repository_class(kind: type[RecordOperations[Any]], awaits: bool) -> type[Repository]:
    method = awaited_method if awaits else blocking_method
    methods: dict[str, Any] = {
        name: method(one)
        for name, one in getmembers(kind, isgeneratorfunction)
        if not name.startswith("_") and not hasattr(RecordOperations, name)
    }
    methods |= {one.__name__: method(one) for one in _of_all_kinds(kind)}
    methods["load_existing"] = method(kind.load_existing)
    name = kind.__name__.replace("Operations", "Repository")
    return type(f"Async{name}" if awaits else name, (Repository,), {"__doc__": kind.__doc__, **methods})


def _of_all_kinds(kind: type[RecordOperations[Any]]) -> list[Callable[..., Operation[Any]]]:
    """Return the operations that list and clear the records of a kind, under the names of memU's protocols."""

    def listed(self: RecordOperations[Any], where: Where = None) -> Operation[Any]:
        """Return the records that a filter selects, oldest first; see `RecordOperations.conditions`."""
        found = yield from self.where(where)
        return list(found.values()) if self.is_listed else found

    def cleared(self: RecordOperations[Any], where: Where = None) -> Operation[Any]:
        """Delete the records that a filter selects, with those that refer to them; return the records.

        Recall files keep their segments. Two round trips.
        """
        found = yield from self.remove(self.conditions(where))
        return list(found.values()) if self.is_listed else found

    listed.__name__, cleared.__name__ = f"list_{kind.view}", f"clear_{kind.view}"
    return [listed, cleared] if kind.is_cleared else [listed]


class RecordView(_OfRecords[R], Mapping[str, R]):
    """The records of one kind by id, as they are in the database at the time of access.

    Each access is one round trip: ``view[id]``, ``len(view)``, ``view.values()``, ``view.items()``.
    """

    def __getitem__(self, id: str) -> R:
        record: R | None = self._run(named(self._operations.one(id), "get"))
        if record is None:
            raise KeyError(id)
        return record

    def __iter__(self) -> Iterator[str]:
        ids: list[str] = self._run(named(self._operations.ids(), "list"))
        return iter(ids)

    def __len__(self) -> int:
        count: int = self._run(self._operations.count())
        return count

    def values(self) -> ValuesView[R]:
        """Return all records, oldest first, in one read."""
        return self.copy().values()

    def items(self) -> ItemsView[str, R]:
        """Return all ids with their records, oldest first, in one read."""
        return self.copy().items()

    def copy(self) -> dict[str, R]:
        """Return all records by id, as they are now."""
        records: dict[str, R] = self._run(named(self._operations.where(), "copy"))
        return records


class RecordListView(Sequence[R]):
    """The records of one kind, oldest first, as they are in the database at the time of access.

    Args:
        operations: The operations on the records.
        run: Runs an operation.
    """

    def __init__(self, operations: RecordOperations[R], run: Callable[[Operation[Any]], Any]) -> None:
        self._records = RecordView(operations, run)

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> list[R]: ...

    def __getitem__(self, index: int | slice) -> R | list[R]:
        return self.copy()[index]

    def __iter__(self) -> Iterator[R]:
        return iter(self.copy())

    def __len__(self) -> int:
        return len(self._records)

    def __eq__(self, other: object) -> bool:
        return self.copy() == list(other) if isinstance(other, list | RecordListView) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a list

    def copy(self) -> list[R]:
        """Return all records, as they are now."""
        return list(self._records.values())

    def __repr__(self) -> str:
        return repr(self._records)


class AsyncRecordView(_OfRecords[R]):
    """The records of one kind, as an asynchronous view; each access is one round trip."""

    async def get(self, id: str) -> R | None:
        """Return the record with an id, or None."""
        record: R | None = await self._run(named(self._operations.one(id), "get"))
        return record

    async def copy(self) -> dict[str, R]:
        """Return all records by id, oldest first, as they are now."""
        records: dict[str, R] = await self._run(named(self._operations.where(), "copy"))
        return records

    async def count(self) -> int:
        """Count the records."""
        count: int = await self._run(self._operations.count())
        return count

    async def __aiter__(self) -> AsyncIterator[str]:
        for id in await self._run(named(self._operations.ids(), "list")):
            yield id
