"""Checks of the options that LangGraph's stores take as dicts, ``index`` and ``ttl``: misspelt keys are refused.

Keys of other LangGraph stores that have no meaning here are accepted, so that a configuration can be moved unchanged;
one log message for each names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.store.base import Embeddings, IndexConfig, TTLConfig, ensure_embeddings

from ...engine.logs import OPTIONS
from ...errors import ConfigError, InvalidInput
from ...families.memories.vectors.coding import Metric
from ...runtime.arguments import TTL_LIMIT_S
from ...wording import did_you_mean

#: Options of other stores that have been logged in this process.
_LOGGED: set[str] = set()

INDEX_KEYS = ("dims", "embed", "fields", "distance_type", "model")
TTL_KEYS = ("default_ttl", "refresh_on_read", "omit_expired", "sweep_interval_minutes")

#: Keys of other stores that have no effect here, each with an explanation: of langgraph-checkpoint-postgres 3.2,
#: langgraph-checkpoint-sqlite 3.1 and langgraph-checkpoint-redis 0.5, and keys that these add to the dict themselves.
FOREIGN_INDEX_KEYS = {
    "ann_index_config": "there is no index to configure",
    "vector_storage_type": "embeddings are kept as 32-bit floats",
    "pool": "the option 'pool_size' sets the number of connections",
    "pool_config": "the option 'pool_size' sets the number of connections",
    "__tokenized_fields": "'fields' names the embedded fields",
    "__estimated_num_vectors": "nothing is estimated",
}
FOREIGN_TTL_KEYS = {"sweep_interval": "'sweep_interval_minutes' sets how often expired items are deleted"}

#: Keywords of other stores' ``from_conn_string`` that have no effect here.
FOREIGN_KEYWORDS = {
    "pool_config": "the option 'pool_size' sets the number of connections",
    "pipeline": "the statements of one call are always sent together",
    "store_prefix": "the option 'table_prefix' names the tables",
    "vector_prefix": "the option 'table_prefix' names the tables",
    "cluster_mode": "the option 'hosts' names several servers",
}

#: This package's metrics by the values of ``distance_type``.
METRICS: Mapping[str, Metric] = {"cosine": "cosine", "inner_product": "dot", "l2": "euclidean"}


def check_index(index: IndexConfig) -> tuple[Embeddings, Metric, list[str]]:
    """Check an index, except ``dims`` and ``model``; return the embedder, the metric, and the paths to embed.

    Raises:
        ConfigError: It is not a dict, lacks a key, or has an unknown or wrong one.
    """
    _check_keys("index", index, INDEX_KEYS, FOREIGN_INDEX_KEYS)
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
    name, fields = "fields", given.get("fields")
    if given.get("text_fields") is not None:
        if fields is None:  # the name in langgraph-checkpoint-sqlite
            name, fields = "text_fields", given["text_fields"]
        else:
            _log_no_effect("index['text_fields']", "'fields' names the embedded fields")
    if isinstance(fields, str):
        raise ConfigError(f"index[{name!r}] must be a list of paths, not one text; write [{fields!r}].")
    if fields is not None and not _are_texts(fields):
        raise ConfigError(f"index[{name!r}] must be a list of paths, such as ['text', 'facts[*].text'].")
    return ensure_embeddings(embed), METRICS[distance], list(fields or ["$"])


def check_ttl(ttl: TTLConfig) -> None:
    """Check the options of expiry.

    Raises:
        ConfigError: They are not a dict, or a key is unknown or wrong.
    """
    _check_keys("ttl", ttl, TTL_KEYS, FOREIGN_TTL_KEYS)
    given = cast(Mapping[str, Any], ttl)
    if (minutes := given.get("default_ttl")) is not None and not _is_ttl(minutes):
        raise ConfigError(f"default_ttl must be a number of minutes above 0, or None, not {minutes!r:.50}.")
    for key in ("refresh_on_read", "omit_expired"):
        if not isinstance(given.get(key, True), bool):
            raise ConfigError(f"{key} must be True or False, not {given[key]!r:.50}.")
    sweep_interval_s(ttl, None, 1)


def sweep_interval_s(ttl: TTLConfig | None, minutes: float | None, default_minutes: float) -> float:
    """The interval between deletions of expired items, in seconds.

    Raises:
        ConfigError: It is not a number above 0.
    """
    given = minutes if minutes is not None else (ttl or {}).get("sweep_interval_minutes")
    if given is None:
        return default_minutes * 60
    if not _is_ttl(given):
        raise ConfigError(f"sweep_interval_minutes must be a number above 0, not {given!r:.50}.")
    return given * 60


def ttl_s(minutes: object) -> float | None:
    """Convert an operation's time to live to seconds; None means that the item never expires.

    Raises:
        InvalidInput: It is not a number of minutes above 0.
    """
    if minutes is None:
        return None
    if not _is_ttl(minutes):
        limit = TTL_LIMIT_S // 60
        raise InvalidInput(f"ttl must be a number of minutes above 0 and up to {limit}, not {minutes!r:.50}.")
    return cast(float, minutes) * 60


def check_paths(index: object) -> list[str]:
    """Check the paths of an operation, and return them as a list.

    Raises:
        InvalidInput: They are not a list of texts.
    """
    if isinstance(index, str):
        raise InvalidInput(f"index must be a list of paths, not one text; write [{index!r}].")
    if not _are_texts(index):
        raise InvalidInput("index must be False or a list of paths, such as ['text', 'facts[*].text'].")
    return list(cast(Sequence[str], index))


def without_foreign(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords of ``from_conn_string`` without those of other stores, and log these."""
    for name in options.keys() & FOREIGN_KEYWORDS.keys():
        _log_no_effect(f"The keyword {name!r}", FOREIGN_KEYWORDS[name])
    return {name: value for name, value in options.items() if name not in FOREIGN_KEYWORDS}


def _check_keys(name: str, given: object, known: Sequence[str], foreign: Mapping[str, str]) -> None:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{name} must be a dict, not {type(given).__name__}. Its keys are {_listed(known)}.")
    for key in given:
        if key in known or (name == "index" and key == "text_fields"):
            continue
        if key not in foreign:
            hint = did_you_mean(str(key), known)
            raise ConfigError(f"{name} has the unknown key {key!r:.50}. Its keys are {_listed(known)}.{hint}")
        _log_no_effect(f"{name}[{key!r}]", foreign[key])


def _log_no_effect(what: str, why: str) -> None:
    """Log once in this process that an option has no effect."""
    if what not in _LOGGED:
        _LOGGED.add(what)
        OPTIONS.warning("%s has no effect here: %s.", what, why)


def _listed(keys: Sequence[str]) -> str:
    return f"{', '.join(keys[:-1])} and {keys[-1]}"


def _are_texts(paths: object) -> bool:
    return isinstance(paths, Sequence) and all(isinstance(path, str) for path in paths)


def _is_ttl(minutes: object) -> bool:
    return isinstance(minutes, int | float) and not isinstance(minutes, bool) and 0 < minutes <= TTL_LIMIT_S / 60
