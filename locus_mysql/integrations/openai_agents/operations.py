"""The contract of the SDK's `Session`, as generators that do no I/O: `SessionOperations`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from agents import TResponseInputItem

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...errors import InvalidInput
from ...families.transcripts.coding import encode_exactly, row_key
from ...families.transcripts.operations import TranscriptOperations
from ...families.transcripts.records import NewItem, TranscriptKey
from ...families.transcripts.writing import ITEMS_LIMIT

#: The kind of these transcripts. The session is their name; their collection is empty.
KIND = "openai-agents"


class SessionOperations:
    """Stores the items of one session.

    Args:
        config: The options.
        session_id: The session.

    Raises:
        InvalidInput: The id of the session cannot be stored.
    """

    def __init__(self, config: MySQLConfig, session_id: str) -> None:
        self.config = config
        self._transcripts = TranscriptOperations(config)
        self.schema = self._transcripts.schema
        self._key = TranscriptKey(KIND, "", session_id)
        row_key(config.tenant, self._key)  # raises for an id that cannot be stored

    def get_items(self, limit: int | None = None) -> Operation[list[TResponseInputItem]]:
        """Return the items of the session, oldest first. One round trip.

        Args:
            limit: The maximum number of items, counted from the last; the server reads no others. None or, as in the
                SDK's session in SQLite, a negative number: all.

        Raises:
            CorruptCheckpoint: A row is damaged.
        """
        read = yield from self._transcripts.read(self._key, last=last_of(limit))
        return [] if read is None else [cast(TResponseInputItem, item.content) for item in read.items]

    def add_items(self, items: list[TResponseInputItem]) -> Operation[None]:
        """Add items to the end of the session, all or none. One round trip.

        Args:
            items: The items. More than 10,000 are stored in several transactions.

        Raises:
            InvalidInput: An item is no JSON; nothing was written.
            StateTooLarge: The items need a larger packet than the server's ``max_allowed_packet``.
        """
        added = new_items(items)
        if len(added) > ITEMS_LIMIT:
            for item in added:  # before the first transaction
                encode_exactly(item.content, "The item")
        for start in range(0, len(added), ITEMS_LIMIT):
            yield from self._transcripts.append(self._key, added[start : start + ITEMS_LIMIT])

    def pop_item(self) -> Operation[TResponseInputItem | None]:
        """Remove the last item and return it; None if the session is empty. Two round trips.

        Concurrent calls never return the same item; with concurrent writers, there are more round trips.

        Raises:
            CorruptCheckpoint: The row is damaged; it stays.
        """
        item = yield from self._transcripts.pop(self._key)
        return None if item is None else cast(TResponseInputItem, item.content)

    def clear_session(self) -> Operation[None]:
        """Delete the session with all its items. One round trip."""
        yield from self._transcripts.delete(self._key, parts=True)


def last_of(limit: int | None) -> int | None:
    """Return the number of items for a limit of the SDK; None: all."""
    return None if limit is None or limit < 0 else limit


def new_items(items: Sequence[TResponseInputItem]) -> list[NewItem]:
    """Return items as the SDK's session in SQLite would return them again: tuples become lists, keys become text.

    Raises:
        InvalidInput: An item is no JSON.
    """
    return [NewItem(_as_json(item)) for item in items]


def _as_json(item: object) -> Any:
    try:
        return json.loads(json.dumps(item))
    except (TypeError, ValueError, RecursionError) as error:
        kind = error if isinstance(error, TypeError) else "it contains itself or is nested too deep"
        raise InvalidInput(f"An item cannot be stored as JSON: {kind}. Nothing was written.") from None
