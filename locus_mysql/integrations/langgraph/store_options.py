"""What LangGraph's stores are given as dicts, ``index`` and ``ttl``: a key written wrong is refused, not ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.store.base import Embeddings, IndexConfig, TTLConfig, ensure_embeddings

from ...errors import ConfigError, InvalidInput
from ...memories.arguments import TTL_LIMIT_S
from ...memories.vectors.scoring import Metric

INDEX_KEYS = ("dims", "embed", "fields", "distance_type")
TTL_KEYS = ("default_ttl", "refresh_on_read", "omit_expired", "sweep_interval_minutes")

#: What ``distance_type`` of an index is called here.
METRICS: Mapping[str, Metric] = {"cosine": "cosine", "inner_product": "dot", "l2": "euclidean"}


def check_index(index: IndexConfig) -> tuple[Embeddings, Metric, list[str]]:
    """What embeds, how embeddings are compared, and the paths of what is embedded; ``dims`` is the store's to check.

    Raises:
        ConfigError: It is no dict, lacks a key, or has one that is unknown or wrong.
    """
    _check_keys("index", index, INDEX_KEYS)
    given = cast(Mapping[str, Any], index)
    if missing := [key for key in ("dims", "embed") if given.get(key) is None]:
        raise ConfigError(f"index has no {missing[0]!r}. Its keys are {_listed(INDEX_KEYS)}.")
    embed = given["embed"]
    if not isinstance(embed, str | Embeddings) and not callable(embed):
        raise ConfigError(
            "index['embed'] must be a function from a list of texts to a list of embeddings, LangChain's Embeddings, "
            f"or the name of a model such as 'openai:text-embedding-3-small', not {type(embed).__name__}."
        )
    distance = given.get("distance_type", "cosine")
    if distance not in METRICS:
        raise ConfigError(f"distance_type must be one of {', '.join(METRICS)}, not {distance!r:.50}.")
    fields = given.get("fields")
    if isinstance(fields, str):
        raise ConfigError(f"index['fields'] must be a list of paths, not one text; write [{fields!r}].")
    if fields is not None and not _are_texts(fields):
        raise ConfigError("index['fields'] must be a list of paths, such as ['text', 'facts[*].text'].")
    return ensure_embeddings(embed), METRICS[distance], list(fields or ["$"])


def check_ttl(ttl: TTLConfig) -> None:
    """See that it says when items expire.

    Raises:
        ConfigError: It is no dict, or has a key that is unknown or wrong.
    """
    _check_keys("ttl", ttl, TTL_KEYS)
    given = cast(Mapping[str, Any], ttl)
    if (minutes := given.get("default_ttl")) is not None and not _is_ttl(minutes):
        raise ConfigError(f"default_ttl must be a number of minutes above 0, or None for ever, not {minutes!r:.50}.")
    for key in ("refresh_on_read", "omit_expired"):
        if not isinstance(given.get(key, True), bool):
            raise ConfigError(f"{key} must be True or False, not {given[key]!r:.50}.")
    sweep_interval_s(ttl, None, 1)


def sweep_interval_s(ttl: TTLConfig | None, minutes: float | None, default_minutes: float) -> float:
    """How long to wait between removing what has expired, in seconds.

    Raises:
        ConfigError: It is no number above 0.
    """
    asked = minutes if minutes is not None else (ttl or {}).get("sweep_interval_minutes")
    if asked is None:
        return default_minutes * 60
    if not _is_ttl(asked):
        raise ConfigError(f"sweep_interval_minutes must be a number above 0, not {asked!r:.50}.")
    return asked * 60


def ttl_s(minutes: object) -> float | None:
    """The time to live of an operation in seconds; None for ever.

    Raises:
        InvalidInput: It is no number of minutes above 0.
    """
    if minutes is None:
        return None
    if not _is_ttl(minutes):
        limit = TTL_LIMIT_S // 60
        raise InvalidInput(f"ttl must be a number of minutes above 0 and up to {limit}, not {minutes!r:.50}.")
    return cast(float, minutes) * 60


def check_paths(index: object) -> list[str]:
    """The paths that an operation names.

    Raises:
        InvalidInput: They are none.
    """
    if isinstance(index, str):
        raise InvalidInput(f"index must be a list of paths, not one text; write [{index!r}].")
    if not _are_texts(index):
        raise InvalidInput("index must be False or a list of paths, such as ['text', 'facts[*].text'].")
    return list(cast(Sequence[str], index))


def _check_keys(name: str, given: object, known: Sequence[str]) -> None:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{name} must be a dict, not {type(given).__name__}. Its keys are {_listed(known)}.")
    if unknown := [key for key in given if key not in known]:
        raise ConfigError(f"{name} has the unknown key {unknown[0]!r:.50}. Its keys are {_listed(known)}.")


def _listed(keys: Sequence[str]) -> str:
    return f"{', '.join(keys[:-1])} and {keys[-1]}"


def _are_texts(paths: object) -> bool:
    return isinstance(paths, Sequence) and all(isinstance(path, str) for path in paths)


def _is_ttl(minutes: object) -> bool:
    return isinstance(minutes, int | float) and not isinstance(minutes, bool) and 0 < minutes <= TTL_LIMIT_S / 60
