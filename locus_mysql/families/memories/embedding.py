"""What of a store's items is embedded and how: `EmbeddingOptions`; and the caller's function: `EmbedTexts`."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from ...background_loop import result_of
from ...engine.operation import Operation
from ...errors import ConfigError, InvalidInput
from .vectors.coding import DIMENSIONS_LIMIT, METRICS, Metric
from .vectors.matrix import check_cache_bytes

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


_STEP = re.compile(r"([^.\[\]]+)|\[(\*|[0-9]+)\]")

#: The whole value.
WHOLE = "$"

#: Memory for the embeddings that repeated searches compare, in bytes.
VECTOR_CACHE_BYTES = 268_435_456


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    """The options of `MemoryStore` about embeddings.

    Args:
        dims: The width of embeddings; None for a store without embeddings.
        embed: The embed function, if there is one.
        fields: Paths of the texts to embed.
        metric: How two embeddings are compared.
        model: The name of the embed function's model; by default that which the function has; see `name_of_model`.
        vector_cache_bytes: Memory for the embeddings of repeated searches.

    Raises:
        ConfigError: An option is wrong, or contradicts another.
    """

    dims: int | None = None
    embed: EmbedFunction | None = None
    fields: Sequence[str] = (WHOLE,)
    metric: Metric = "cosine"
    model: str = ""
    vector_cache_bytes: int = VECTOR_CACHE_BYTES

    def __post_init__(self) -> None:
        dims, embed = self.dims, self.embed
        if dims is not None and (
            isinstance(dims, bool) or not isinstance(dims, int) or not 1 <= dims <= DIMENSIONS_LIMIT
        ):
            raise ConfigError(f"dims must be a whole number from 1 to {DIMENSIONS_LIMIT}, not {dims!r}.")
        if embed is not None and not callable(embed):
            raise ConfigError(
                f"embed must be a function from a list of texts to a list of embeddings, not {type(embed).__name__}; "
                "of an object give the method that does it, such as model.embed_documents."
            )
        if embed is not None and dims is None:
            raise ConfigError("A store with an embed function needs dims, the width of its embeddings.")
        if self.metric not in METRICS:
            raise ConfigError(f"metric must be one of {', '.join(METRICS)}, not {self.metric!r}.")
        if isinstance(self.fields, str):
            raise ConfigError(f"fields must be a list of paths, not one text; write [{self.fields!r}].")
        if not isinstance(self.model, str):
            raise ConfigError(
                f"model must be text, the name of the embed function's model, not {type(self.model).__name__}."
            )
        object.__setattr__(self, "model", self.model or name_of_model(embed))  # the class is frozen
        check_cache_bytes(self.vector_cache_bytes)
        for path in self.fields:
            check_path(path)

    @property
    def refuses_zeros(self) -> bool:
        """Whether embeddings of zeros cannot be compared: they have no direction, and so no cosine."""
        return self.metric == "cosine"


def name_of_model(embedder: object) -> str:
    """Return the name that an embedder, or the object of its method, gives to its model; empty if it has none.

    LangChain's ``Embeddings`` have it as ``model``, ``model_name`` or ``model_id``.
    """
    owner = getattr(embedder, "__self__", embedder)
    for name in ("model", "model_name", "model_id"):
        if isinstance(value := getattr(owner, name, None), str):
            return value
    return ""


def check_path(path: object) -> str:
    """Check a path: names joined by dots, each optionally followed by ``[*]`` or ``[3]``.

    Raises:
        InvalidInput: The path cannot be parsed.
    """
    if not isinstance(path, str):
        raise InvalidInput(f"A path must be text, not {type(path).__name__}.")
    if path != WHOLE and not re.fullmatch(r"[^.\[\]]+(\.[^.\[\]]+|\[(\*|[0-9]+)\])*", path):
        raise InvalidInput(f"Path {path!r} cannot be read. Write names joined by dots, as in 'a.b[*].c', or '$'.")
    return path


def texts_at(value: Any, path: str) -> list[str]:
    """Return the texts at a path; other values as JSON."""
    found = [value]
    for name, index in _STEP.findall(path) if path != WHOLE else ():
        if name:
            found = [part[name] for part in found if isinstance(part, dict) and name in part]
        elif index == "*":
            found = [item for part in found if isinstance(part, list) for item in part]
        else:
            found = [part[int(index)] for part in found if isinstance(part, list) and int(index) < len(part)]
    texts = [
        part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in found if part is not None
    ]
    return [text for text in texts if text]
