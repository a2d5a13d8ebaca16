"""Embedding texts by a function of the caller's: what is asked of it, and what becomes of its answer."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from ...engine.operation import Operation
from ...errors import InvalidInput

T = TypeVar("T")

#: A batch of texts in, a list of embeddings (or a matrix) out; sync or async.
EmbedFunction: TypeAlias = Callable[[list[str]], Any]


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts to be embedded, outside of any transaction.

    Args:
        texts: Each once.
        query: Whether they are asked for, not stored: some models embed the two differently.
    """

    texts: list[str]
    query: bool = False


#: Yields texts to be embedded, and is sent their embeddings; or operations, and is sent what they return.
Procedure: TypeAlias = Generator[Texts | Operation[Any], Any, T]


def digest_of(text: str, model: str) -> bytes:
    """By what a text that was embedded is recognised."""
    return hashlib.sha256(f"{model}\0{text}".encode()).digest()[:16]


async def embed_awaited(embed: EmbedFunction, texts: Texts) -> Sequence[Any]:
    """Embed texts without holding up the event loop."""
    call = getattr(embed, "__call__", None)  # noqa: B004 - of an object, it may be a coroutine function
    if inspect.iscoroutinefunction(embed) or inspect.iscoroutinefunction(call):
        outcome = await embed(texts.texts)
    else:
        outcome = await asyncio.to_thread(embed, texts.texts)
        if inspect.isawaitable(outcome):
            outcome = await outcome
    return _checked(outcome, texts)


def embed_blocking(embed: EmbedFunction, texts: Texts) -> Sequence[Any]:
    """Embed texts and wait for it; an async function runs in an event loop of its own."""
    outcome = embed(texts.texts)
    return _checked(_result_of(outcome) if inspect.isawaitable(outcome) else outcome, texts)


def _result_of(outcome: Awaitable[Any]) -> Any:
    """What an awaitable results in, whether or not this thread has an event loop running."""
    found: list[Any] = []
    failed: list[BaseException] = []

    async def awaited() -> Any:
        return await outcome

    def run() -> None:
        try:
            found.append(asyncio.run(awaited()))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="locus-mysql-embed")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def _checked(outcome: Any, texts: Texts) -> Sequence[Any]:
    try:
        embeddings = list(outcome)
    except TypeError:
        raise InvalidInput(f"The embed function returned {type(outcome).__name__}, not a list of embeddings.") from None
    if len(embeddings) != len(texts.texts):
        raise InvalidInput(f"The embed function returned {len(embeddings)} embeddings for {len(texts.texts)} texts.")
    return embeddings
