"""Records and entries of conversations as JSON values: converts them. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import PydanticSerializationError

from ...errors import CorruptCheckpoint, InvalidInput
from ...families.transcripts.records import Header, Item, NewItem
from ...runtime.exact_json import decode_json, encode_json

T = TypeVar("T")

_RECORD = TypeAdapter(ConversationRecord)


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record, and the log that has the entries of its history.

    Args:
        record: The record.
        log: The conversation whose log has the entries: its own, or for a fork that of the first conversation.
    """

    record: ConversationRecord
    log: str


def header_of(stored: StoredRecord) -> Header:
    """Return a record as the header of a transcript, whose tag is the record's revision.

    Raises:
        InvalidInput: It has a value that JSON cannot hold.
    """
    record = stored.record
    state = {"log": stored.log, "record": _to_json(_RECORD, record, f"Conversation {record.conversation_id!r}")}
    return Header(state, record.revision, record.scope)


def stored_record(header: Header) -> StoredRecord:
    """Return the record in the header of a transcript.

    Raises:
        CorruptCheckpoint: This version of Pydantic AI cannot read it.
    """
    return StoredRecord(_from_json(_RECORD, header.state["record"], "The conversation"), str(header.state["log"]))


def items_of(entries: Sequence[ConversationEntry]) -> list[NewItem]:
    """Return entries as items.

    Raises:
        InvalidInput: A message has a value that JSON cannot hold.
    """
    messages = _to_json(ModelMessagesTypeAdapter, [entry.message for entry in entries], "A message")
    return [
        NewItem({"parent_id": entry.parent_id, "entry_kind": entry.kind, **message}, entry.id)
        for entry, message in zip(entries, messages, strict=True)
    ]


def parent_of(item: Item) -> str | None:
    """Return the entry before an entry."""
    parent: str | None = item.content["parent_id"]
    return parent


def entries_of(items: Sequence[Item]) -> list[ConversationEntry]:
    """Return items as entries.

    Raises:
        CorruptCheckpoint: This version of Pydantic AI cannot read one.
    """
    messages = [{name: item.content[name] for name in item.content if name not in _OF_ENTRY} for item in items]
    read = _from_json(ModelMessagesTypeAdapter, messages, "A message")
    return [
        ConversationEntry(
            id=item.item_id or "", parent_id=parent_of(item), message=message, kind=item.content["entry_kind"]
        )
        for item, message in zip(items, read, strict=True)
    ]


#: The fields of an entry besides those of its message.
_OF_ENTRY = frozenset({"parent_id", "entry_kind"})


def _to_json(adapter: TypeAdapter[T], value: T, what: str) -> Any:
    """Return a value as JSON value.

    Args:
        adapter: The adapter of its type.
        value: The value.
        what: Its name in the error, such as ``A message``.

    Raises:
        InvalidInput: JSON cannot hold it.
    """
    try:
        return decode_json(adapter.dump_json(value))
    except (PydanticSerializationError, RecursionError, CorruptCheckpoint) as error:
        kind = type(error).__name__
        raise InvalidInput(f"{what} holds a value that JSON cannot hold ({kind}). Nothing was stored.") from None


def _from_json(adapter: TypeAdapter[T], value: Any, what: str) -> T:
    """Return the value of a JSON value.

    Args:
        adapter: The adapter of its type.
        value: The JSON value.
        what: Its name in the error, such as ``A message``.

    Raises:
        CorruptCheckpoint: This version of the framework cannot read it.
    """
    try:
        return adapter.validate_json(encode_json(value))
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
        path = ".".join(map(str, problem["loc"]))
        raise CorruptCheckpoint(
            f"{what} cannot be read by this version of Pydantic AI: {problem['type']} at {path[:200]!r}. "
            "If a later version wrote it, upgrade."
        ) from None
