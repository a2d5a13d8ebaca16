"""What LangGraph's stores are given as dicts, ``index`` and ``ttl``: a key written wrong is refused, not ignored.

Keys that other LangGraph stores take, and that mean nothing here, are accepted, so that a configuration may be moved as
it is; the log says once that they have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

from langgraph.store.base import Embeddings, IndexConfig, TTLConfig, ensure_embeddings

from ...engine.logs import OPTIONS
from ...errors import ConfigError, InvalidInput
from ...families.memories.arguments import TTL_LIMIT_S
from ...families.memories.vectors.scoring import Metric

#: Of what the log has said in this process that it has no effect.
_SAID: set[str] = set()

INDEX_KEYS = ("dims", "embed", "fields", "distance_type")
TTL_KEYS = ("default_ttl", "refresh_on_read", "omit_expired", "sweep_interval_minutes")

#: Keys of other stores without an effect here, with what stands for them: of langgraph-checkpoint-postgres 3.2,
#: langgraph-checkpoint-sqlite 3.1 and langgraph-checkpoint-redis 0.5, and what these write into the dict themselves.
FOREIGN_INDEX_KEYS = {
    "ann_index_config": "there is no index to configure",
    "vector_storage_type": "embeddings are kept as 32-bit floats",
    "pool": "the option 'pool_size' says how many connections there are",
    "pool_config": "the option 'pool_size' says how many connections there are",
    "__tokenized_fields": "'fields' says what is embedded",
    "__estimated_num_vectors": "nothing is estimated",
}
FOREIGN_TTL_KEYS = {"sweep_interval": "'sweep_interval_minutes' says how often expired items are removed"}

#: Keywords of ``from_conn_string`` of other stores, likewise.
FOREIGN_KEYWORDS = {
    "pool_config": "the option 'pool_size' says how many connections there are",
    "pipeline": "statements of one call are sent together anyway",
    "store_prefix": "the option 'table_prefix' names the tables",
    "vector_prefix": "the option 'table_prefix' names the tables",
    "cluster_mode": "the option 'hosts' names several servers",
}

#: What ``distance_type`` of an index is called here.
METRICS: Mapping[str, Metric] = {"cosine": "cosine", "inner_product": "dot", "l2": "euclidean"}


def check_index(index: IndexConfig) -> tuple[Embeddings, Metric, list[str]]:
    """What embeds, how embeddings are compared, and the paths of what is embedded; ``dims`` is the store's to check.

    Raises:
        ConfigError: It is no dict, lacks a key, or has one that is unknown or wrong.
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
        if fields is None:  # what langgraph-checkpoint-sqlite calls it
            name, fields = "text_fields", given["text_fields"]
        else:
            _no_effect("index['text_fields']", "'fields' says what is embedded")
    if isinstance(fields, str):
        raise ConfigError(f"index[{name!r}] must be a list of paths, not one text; write [{fields!r}].")
    if fields is not None and not _are_texts(fields):
        raise ConfigError(f"index[{name!r}] must be a list of paths, such as ['text', 'facts[*].text'].")
    return ensure_embeddings(embed), METRICS[distance], list(fields or ["$"])


def check_ttl(ttl: TTLConfig) -> None:
    """See that it says when items expire.

    Raises:
        ConfigError: It is no dict, or has a key that is unknown or wrong.
    """
    _check_keys("ttl", ttl, TTL_KEYS, FOREIGN_TTL_KEYS)
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


def without_foreign(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of ``from_conn_string`` without those that only other stores take, of which the log tells."""
    for name in options.keys() & FOREIGN_KEYWORDS.keys():
        _no_effect(f"The keyword {name!r}", FOREIGN_KEYWORDS[name])
    return {name: value for name, value in options.items() if name not in FOREIGN_KEYWORDS}


def _check_keys(name: str, given: object, known: Sequence[str], foreign: Mapping[str, str]) -> None:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{name} must be a dict, not {type(given).__name__}. Its keys are {_listed(known)}.")
    for key in given:
        if key in known or (name == "index" and key == "text_fields"):
            continue
        if key not in foreign:
            close = get_close_matches(str(key), known, 1, 0.8)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"{name} has the unknown key {key!r:.50}. Its keys are {_listed(known)}.{hint}")
        _no_effect(f"{name}[{key!r}]", foreign[key])


def _no_effect(what: str, why: str) -> None:
    """Say once in this process that something that was given has no effect."""
    if what not in _SAID:
        _SAID.add(what)
        OPTIONS.warning("%s has no effect here: %s.", what, why)


def _listed(keys: Sequence[str]) -> str:
    return f"{', '.join(keys[:-1])} and {keys[-1]}"


def _are_texts(paths: object) -> bool:
    return isinstance(paths, Sequence) and all(isinstance(path, str) for path in paths)


def _is_ttl(minutes: object) -> bool:
    return isinstance(minutes, int | float) and not isinstance(minutes, bool) and 0 < minutes <= TTL_LIMIT_S / 60
