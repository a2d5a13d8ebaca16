"""The key-value store of py-key-value, `KeyValueStore`, and its operations, which do no I/O.

A collection is a namespace of long-term memory, a key the key of an item in it, and a value the item's value. Nothing
is indexed or embedded: values are found by key only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, SupportsFloat, TypeAlias, Unpack, cast

from key_value.aio.errors import InvalidTTLError, SerializationError

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...engine.operation import Batch, Operation
from ...errors import InvalidInput
from ...families.memories.arguments import encoded_key, path_of
from ...families.memories.embedding import Procedure
from ...families.memories.operations import FrameworkMemories, MemoryOperations
from ...families.memories.puts import STORE_TTL, Put
from ...families.memories.records import MemoryItem, Namespace, item_of
from ...families.memories.statements.items import get_items
from ...families.memories.store import AsyncMemories
from ...families.memories.writing import BATCH_LIMIT
from ...records.moving import NOW
from ...runtime.arguments import TTL_LIMIT_S, check_text
from ...runtime.database import Where, share
from ...runtime.server_rows import aware
from ...runtime.stores import awaited_method

#: The first label of the namespaces.
LABEL = "py-key-value"

#: A name of more bytes, an empty one, and one with a NUL are stored as their digest, and the name in the metadata.
NAME_BYTES = 900

#: The beginning of a name that is stored as its digest. Names that begin so are stored as their digests, too.
DIGEST = "sha256:"

#: The maximum number of bytes of a name as JSON: the metadata of an item hold two of them.
NAME_LIMIT_BYTES = 32_000

#: More keys or collections than there are.
ALL = 2**31

Value: TypeAlias = dict[str, Any]


class KeyValueOperations(FrameworkMemories):
    """Stores the values of one tenant.

    Args:
        config: The options.
        default_collection: The collection of calls that name none.
    """

    def __init__(self, config: MySQLConfig, default_collection: str) -> None:
        super().__init__(MemoryOperations(config))
        self._default = default_collection

    def get(self, key: str, *, collection: str | None = None) -> Procedure[Value | None]:
        """Return the value under a key; None if there is none, or it has expired. One round trip.

        Args:
            key: Any text but lone surrogates, of up to 32,000 bytes as JSON.
            collection: The collection, named like keys; by default that of the store.
        """
        return (yield from self.get_many([key], collection=collection))[0]

    def get_many(self, keys: Sequence[str], *, collection: str | None = None) -> Procedure[list[Value | None]]:
        """Return the values under several keys, in the order of the keys. One round trip; see `get`."""
        places = [(self._namespace(collection), stored_name(key, "key")) for key in keys]
        found = yield from self.items.get_batch(places)
        return [found[place].value if place in found else None for place in places]

    def ttl(self, key: str, *, collection: str | None = None) -> Procedure[tuple[Value | None, float | None]]:
        """Return the value under a key, and the seconds until it expires by the server's clock; None for never."""
        return (yield from self.ttl_many([key], collection=collection))[0]

    def ttl_many(
        self, keys: Sequence[str], *, collection: str | None = None
    ) -> Procedure[list[tuple[Value | None, float | None]]]:
        """Return what `ttl` returns for several keys, in the order of the keys. One round trip."""
        path = path_of(self._namespace(collection))
        places = [(path, encoded_key(stored_name(key, "key"))) for key in keys]
        now, found = yield self._read_at(list(dict.fromkeys(places)))
        timed: list[tuple[Value | None, float | None]] = []
        for item in map(found.get, places):
            expires = None if item is None else item.expires_at
            timed.append((item and item.value, expires and (expires - now).total_seconds()))
        return timed

    def put(
        self, key: str, value: Mapping[str, Any], *, collection: str | None = None, ttl: SupportsFloat | None = None
    ) -> Procedure[None]:
        """Store a value under a key; replaces the one under it and its time to live. One round trip.

        Args:
            key: See `get`.
            value: A mapping that ``json.dumps`` accepts; tuples come back as lists.
            collection: See `get`.
            ttl: The value expires after this many seconds; by default the store's ``ttl_s``, or never.

        Raises:
            SerializationError: The value is no JSON object.
            InvalidTTLError: The time to live is not above 0 and up to 100 years.
            StateTooLarge: A packet would exceed the server's ``max_allowed_packet``.
        """
        yield from self.put_many([key], [value], collection=collection, ttl=ttl)

    def put_many(
        self,
        keys: Sequence[str],
        values: Sequence[Mapping[str, Any]],
        *,
        collection: str | None = None,
        ttl: SupportsFloat | None = None,
    ) -> Procedure[None]:
        """Store values under several keys, all or none of each 10,000. One round trip for these; see `put`.

        Raises:
            ValueError: There are more keys than values, or fewer.
        """
        if len(keys) != len(values):
            raise InvalidInput(f"put_many got {len(keys)} keys and {len(values)} values; give one value for each key.")
        namespace, ttl_s = self._namespace(collection), _seconds(ttl)
        puts = []
        for key, value in zip(keys, values, strict=True):
            stored = {"collection": namespace[1], "key": stored_name(key, "key")}
            named = {"collection": collection or self._default, "key": key}
            metadata = {what: name for what, name in named.items() if name != stored[what]}
            puts.append(Put(namespace, stored["key"], _json(value), metadata, ttl_s, text="", index=False))
        for start in range(0, len(puts), BATCH_LIMIT):
            try:
                yield from self.items.put_batch(puts[start : start + BATCH_LIMIT])
            except InvalidInput as error:  # names and times are valid
                raise SerializationError(str(error)) from error

    def delete(self, key: str, *, collection: str | None = None) -> Procedure[bool]:
        """Delete the value under a key; returns whether there was one. One round trip; see `get`."""
        return bool((yield from self.delete_many([key], collection=collection)))

    def delete_many(self, keys: Sequence[str], *, collection: str | None = None) -> Procedure[int]:
        """Delete the values under several keys; returns how many there were. One round trip for each 10,000."""
        namespace, deleted = self._namespace(collection), 0
        places = [(namespace, stored_name(key, "key")) for key in dict.fromkeys(keys)]
        for start in range(0, len(places), BATCH_LIMIT):
            deleted += yield from self.items.delete_batch(places[start : start + BATCH_LIMIT])
        return deleted

    def keys(self, collection: str | None = None, *, limit: int | None = None) -> Procedure[list[str]]:
        """Return the keys of a collection, at most ``limit`` of them; long ones in the order of their digests."""
        namespace = self._namespace(collection)
        stored = yield from self.items.list_keys(namespace, ALL if limit is None else limit)
        items = yield from self.items.get_batch([(namespace, key) for key in stored if key.startswith(DIGEST)])
        names = {key: cast(str, item.metadata["key"]) for (_, key), item in items.items()}
        return [names.get(key, key) for key in stored if key in names or not key.startswith(DIGEST)]

    def collections(self, *, limit: int | None = None) -> Procedure[list[str]]:
        """Return the names of the collections that have values, at most ``limit`` of them, in the order of `keys`."""
        names: list[str] = []
        found = yield from self.items.list_namespaces((LABEL,), limit=ALL if limit is None else limit)
        for namespace in found:
            if namespace[1].startswith(DIGEST):
                hits = yield from self.items.search(namespace, limit=1, only_here=True)
                names += [hit.item.metadata["collection"] for hit in hits]
            else:
                names.append(namespace[1])
        return names

    def destroy_collection(self, collection: str) -> Procedure[bool]:
        """Delete all values of a collection; returns whether there were any. One round trip."""
        return bool((yield from self.items.clear_namespace(self._namespace(collection))))

    def destroy(self) -> Procedure[bool]:
        """Delete all values of the tenant, a collection at a time; returns True."""
        for namespace in (yield from self.items.list_namespaces((LABEL,), limit=ALL)):
            yield from self.items.clear_namespace(namespace)
        return True

    def cull(self) -> Procedure[None]:
        """Remove all expired items of the tenant, which no call finds; writes also remove some from time to time."""
        while (yield from self.items.sweep()):
            pass

    def _namespace(self, collection: str | None) -> Namespace:
        return LABEL, stored_name(collection or self._default, "collection")

    def _read_at(self, places: Sequence[tuple[bytes, bytes]]) -> Operation[tuple[datetime, dict[Any, MemoryItem]]]:
        """Return items by their places, and the server's time just before it read them. One round trip."""
        sql, tenant = self.items.sql, self.items.tenant
        queries = get_items(sql, tenant, places)
        results = yield Batch((NOW, *queries), atomic=False)
        rows = [row for query in queries for row in results.rows(query)]
        items = {(row.path, row.key): item_of(tenant, row, self.items.sealed) for row in rows}
        return aware(results.of(NOW).rows[0][0]), items


def stored_name(name: str, what: str) -> str:
    """Return the label or the key under which a name is stored: the name, or its digest.

    Raises:
        InvalidInput: The name is not text, has a lone surrogate, or is too long.
    """
    encoded = check_text(name, f"The {what}").encode()
    if 0 < len(encoded) <= NAME_BYTES and "\0" not in name and not name.startswith(DIGEST):
        return name
    size = len(json.dumps(name, ensure_ascii=False).encode())
    if size > NAME_LIMIT_BYTES:
        raise InvalidInput(f"The {what} takes {size} bytes as JSON; the limit is {NAME_LIMIT_BYTES}. Hash it.")
    return DIGEST + hashlib.sha256(encoded).hexdigest()


def _json(value: object) -> Value:
    """Return a value as it will be loaded."""
    try:
        return cast(Value, json.loads(json.dumps(dict(cast(Mapping[str, Any], value)), allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise SerializationError(f"The value is not JSON: {error}.") from error


def _seconds(ttl: object) -> float | str:
    """Return the time to live of an item."""
    if ttl is None:
        return STORE_TTL
    try:
        seconds = float(cast(SupportsFloat, ttl))
    except (TypeError, ValueError):
        seconds = 0
    if isinstance(ttl, bool | str) or not 0 < seconds <= TTL_LIMIT_S:
        raise InvalidTTLError(ttl)
    return seconds


class KeyValueStore(AsyncMemories[KeyValueOperations]):
    """Keeps values under keys in MySQL: an `AsyncKeyValue` of py-key-value, for FastMCP and others.

    It also lists and destroys collections, lists keys, and culls expired values.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        default_collection: The collection of calls that name none.
        options: Options of `MySQLConfig`, of which ``tenant`` and ``ttl_s`` apply to values.

    Example:
        ```python
        async with KeyValueStore("mysql://user:password@localhost/app") as store:
            await store.put("ada", {"token": "t-1"}, collection="tokens", ttl=3600)
            value, seconds = await store.ttl("ada", collection="tokens")
            assert value == {"token": "t-1"} and 0 < seconds <= 3600
            assert await store.get_many(["ada", "bob"], collection="tokens") == [{"token": "t-1"}, None]
        ```
    """

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        default_collection: str = "default_collection",
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(KeyValueOperations(config, default_collection), database, owned=owned)

    get = awaited_method(KeyValueOperations.get)
    get_many = awaited_method(KeyValueOperations.get_many)
    ttl = awaited_method(KeyValueOperations.ttl)
    ttl_many = awaited_method(KeyValueOperations.ttl_many)
    put = awaited_method(KeyValueOperations.put)
    put_many = awaited_method(KeyValueOperations.put_many)
    delete = awaited_method(KeyValueOperations.delete)
    delete_many = awaited_method(KeyValueOperations.delete_many)
    keys = awaited_method(KeyValueOperations.keys)
    collections = awaited_method(KeyValueOperations.collections)
    destroy_collection = awaited_method(KeyValueOperations.destroy_collection)
    destroy = awaited_method(KeyValueOperations.destroy)
    cull = awaited_method(KeyValueOperations.cull)
