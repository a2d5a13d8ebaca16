"""Embeds texts with the caller's function: the request `EmbedTexts`, and the functions that execute it."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from ...background_loop import result_of
from ...engine.operation import Operation
from ...errors import InvalidInput

T = TypeVar("T")

#: Takes a list of texts, returns a list of embeddings (or a matrix); sync or async.
EmbedFunction: TypeAlias = Callable[[list[str]], Any]


@dataclass(frozen=True, slots=True)
class EmbedTexts:
    """A request to embed texts, outside of any transaction.

    Args:
        texts: The texts, without duplicates.
        query: Whether these are queries, not texts to store: some models embed the two differently.
    """

    texts: list[str]
    query: bool = False


#: A generator that yields requests to embed texts, and receives their embeddings; or operations, and receives their
#: results.
Procedure: TypeAlias = Generator[EmbedTexts | Operation[Any], Any, T]


def digest_of(text: str, model: str) -> bytes:
    """Return the digest that identifies an embedded text."""
    return hashlib.sha256(f"{model}\0{text}".encode()).digest()[:16]


async def embed_awaited(embed: EmbedFunction, request: EmbedTexts) -> Sequence[Any]:
    """Embed texts without blocking the event loop."""
    call = getattr(embed, "__call__", None)  # noqa: B004 - of an object, it may be a coroutine function
    if inspect.iscoroutinefunction(embed) or inspect.iscoroutinefunction(call):
        outcome = await embed(request.texts)
    else:
        outcome = await asyncio.to_thread(embed, request.texts)
        if inspect.isawaitable(outcome):
            outcome = await outcome
    return _checked(outcome, request)


def embed_blocking(embed: EmbedFunction, request: EmbedTexts) -> Sequence[Any]:
    """Embed texts and wait for the result; an async function runs in the background loop."""
    outcome = embed(request.texts)
    return _checked(result_of(outcome) if inspect.isawaitable(outcome) else outcome, request)


def _checked(outcome: Any, request: EmbedTexts) -> Sequence[Any]:
    try:
        embeddings = list(outcome)
    except TypeError:
        raise InvalidInput(f"The embed function returned {type(outcome).__name__}, not a list of embeddings.") from None
    if len(embeddings) != len(request.texts):
        raise InvalidInput(f"The embed function returned {len(embeddings)} embeddings for {len(request.texts)} texts.")
    return embeddings
