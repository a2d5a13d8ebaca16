"""Runs, events, snapshots and messages as JSON values: converts them. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai_harness.step_persistence import ContinuableSnapshot, RunRecord, StepEvent, ToolEffectRecord

from ...families.transcripts.records import Item, NewItem
from ...runtime.exact_json import encode_json
from ..pydantic_ai_json import from_json, to_json

RUN = TypeAdapter(RunRecord)
EVENT = TypeAdapter(StepEvent)
EFFECT = TypeAdapter(ToolEffectRecord)
SNAPSHOT = TypeAdapter(ContinuableSnapshot)

#: The longest id that is stored as it is, in bytes; of a longer one, the digest is.
PLAIN_ID_BYTES = 200


class Link(NamedTuple):
    """A message of a history.

    Args:
        item_id: A digest of this message and all before it, so that equal ids stand for equal histories.
        parent_id: That of the message before; None for the first one.
        message: The message as JSON value.
    """

    item_id: str
    parent_id: str | None
    message: dict[str, Any]

    def item(self) -> NewItem:
        """Return the item that stores the message."""
        return NewItem({PARENT: self.parent_id, **self.message}, self.item_id)


#: The field of an item beside those of its message.
PARENT = "parent_id"


def item_id(text: str) -> str:
    """Return the id of the item for an id of the framework, which may be any text."""
    encoded = text.encode(errors="surrogatepass")
    if len(encoded) <= PLAIN_ID_BYTES and text.isprintable():
        return f"={text}"
    return f"sha256:{hashlib.sha256(encoded).hexdigest()}"


def links_of(messages: Sequence[ModelMessage]) -> list[Link]:
    """Return the messages of a history, each with its ids.

    Raises:
        InvalidInput: A message has a value that JSON cannot hold.
    """
    links: list[Link] = []
    parent: str | None = None
    for message in to_json(ModelMessagesTypeAdapter, list(messages), "A message"):
        digest = hashlib.blake2b((parent or "").encode() + encode_json(message), digest_size=16).hexdigest()
        links.append(Link(digest, parent, message))
        parent = digest
    return links


def parent_of(item: Item) -> str | None:
    """Return the id of the message before a stored message."""
    parent: str | None = item.content[PARENT]
    return parent


def messages_of(items: Sequence[Item]) -> list[ModelMessage]:
    """Return stored messages.

    Raises:
        CorruptCheckpoint: This version of the framework cannot read one.
    """
    contents = [{name: item.content[name] for name in item.content if name != PARENT} for item in items]
    return from_json(ModelMessagesTypeAdapter, contents, "A message")


def snapshot_fields(snapshot: ContinuableSnapshot) -> dict[str, Any]:
    """Return a snapshot without its messages.

    Raises:
        InvalidInput: It has a value that JSON cannot hold.
    """
    fields: dict[str, Any] = to_json(SNAPSHOT, replace(snapshot, messages=[]), "The snapshot")
    return fields


def snapshot_of(fields: Mapping[str, Any], items: Sequence[Item]) -> ContinuableSnapshot:
    """Return a stored snapshot.

    Raises:
        CorruptCheckpoint: This version of the framework cannot read it.
    """
    snapshot = from_json(SNAPSHOT, fields, "The snapshot")
    return replace(snapshot, messages=messages_of(items))
