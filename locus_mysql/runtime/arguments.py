"""Checks callers' arguments before anything is sent, and determines the tenant of a call.

The tenant is that of a `tenant_scope` around the call, or `tenant_of` the options; `Tenancy` also asks a function.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from ..config import StoreOptions
from ..errors import ConfigError, InvalidInput, TenantUnknown, UsageError
from .exact_json import check_json_object
from .matching import index_keys

T = TypeVar("T")

THREAD_ID_LIMIT = 512
CHECKPOINT_ID_LIMIT = 128
TENANT_LIMIT = 128
METADATA_LIMIT_BYTES = 65_536

#: A hundred years.
TTL_LIMIT_S = 3_155_760_000

#: Begins the name of an environment variable that is given instead of a value.
_FROM_ENVIRONMENT = "env:"

#: The greatest age in days, for methods that remove what is older.
AGE_LIMIT_DAYS = 365_000


#: The tenants of the scopes around a call, by the identity of the options of each scope's store.
_scopes: ContextVar[Mapping[int, str]] = ContextVar("locus_mysql_tenants", default=MappingProxyType({}))


def check_limit(value: object, what: str = "limit", least: int = 0, most: int = 2**31) -> int:
    """Check a whole number from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{what} must be a whole number from {least} to {most}, not {value!r:.50}.")
    return value


def check_days(value: object, what: str = "older_than_days") -> float:
    """Check an age in days, from 0 to 365,000."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= AGE_LIMIT_DAYS:
        raise InvalidInput(f"{what} must be a number from 0 to {AGE_LIMIT_DAYS}, not {value!r:.50}.")
    return value


def check_type(value: object, kind: type[T], what: str) -> T:
    """Check that a value is of a type."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{what} must be a {kind.__name__}, not {type(value).__name__}.")
    return value


def check_each(values: object, kind: type[T], what: str) -> list[T]:
    """Check that values are a list, or another iterable, of values of one type."""
    found, each = _listed(values, what, f"{kind.__name__} values"), f"Each of the {what}"
    return [check_type(value, kind, each) for value in found]


def check_pairs(values: object, what: str) -> list[tuple[Any, Any]]:
    """Check that values are a list, or another iterable, of pairs."""
    pairs = _listed(values, what, "pairs")
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise InvalidInput(f"The {what} must be pairs, such as ('a', 1).")
    return pairs


def _listed(values: object, what: str, of: str) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"The {what} must be a list of {of}, not {type(values).__name__}.")
    return list(values)


def check_text(value: object, what: str) -> str:
    """Check that a text can be encoded as UTF-8."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}.")
    _check_encodable(value, what)
    return value


def microseconds(seconds: object, what: str = "ttl_s") -> int | None:
    """Return a time to live in microseconds; None for none.

    Raises:
        InvalidInput: It is no number above 0, or more than a hundred years.
    """
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= TTL_LIMIT_S:
        raise InvalidInput(f"{what} must be a number of seconds above 0 and up to {TTL_LIMIT_S}, not {seconds!r:.50}.")
    return max(1, math.ceil(seconds * 1_000_000))


def encode_metadata(metadata: object) -> tuple[str | None, str | None]:
    """Return metadata as the text to store, and the JSON array of its keys for the index.

    Raises:
        InvalidInput: It is not a dict of JSON values, holds NaN or an infinity, or is over 65,536 bytes.
    """
    if metadata is None or metadata == {}:
        return None, None
    check_json_object(metadata, "Metadata")
    assert isinstance(metadata, dict)  # noqa: S101 - for the type checker; check_json_object has raised otherwise
    try:
        text = json.dumps(metadata, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InvalidInput("Metadata holds NaN or an infinity, which JSON does not know. Use None or text.") from None
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        text = json.dumps(metadata, separators=(",", ":"), ensure_ascii=True)
        size = len(text)
    if size > METADATA_LIMIT_BYTES:
        raise InvalidInput(
            f"Metadata is {size} bytes of JSON; the limit is {METADATA_LIMIT_BYTES}. Keep it in the state."
        )
    return text, json.dumps(index_keys(metadata))


def _check_id(value: object, what: str, limit: int) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}.")
    if not value:
        raise InvalidInput(f"{what} is empty; it must have 1 to {limit} characters.")
    if len(value) > limit:
        raise InvalidInput(
            f"{what} is {len(value)} characters long; the limit is {limit}. Shorten it or hash it before saving."
        )
    if "\0" in value:
        raise InvalidInput(f"{what} holds a NUL character; remove it.")
    try:
        value.encode()
    except UnicodeEncodeError:
        _check_encodable(value, what)
    return value


#: Checks of ids, all of which are text without NUL.
check_thread_id = partial(_check_id, what="Thread id", limit=THREAD_ID_LIMIT)
check_session_id = partial(_check_id, what="Session id", limit=THREAD_ID_LIMIT)
check_variable = partial(_check_id, what="A variable's key", limit=THREAD_ID_LIMIT)
check_checkpoint_id = partial(_check_id, what="Checkpoint id", limit=CHECKPOINT_ID_LIMIT)
check_tenant = partial(_check_id, what="Tenant", limit=TENANT_LIMIT)


def _check_encodable(value: str, what: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} holds a lone surrogate, which UTF-8 cannot hold; remove it.") from None


@contextmanager
def tenant_scope(options: StoreOptions, tenant: str) -> Iterator[None]:
    """Let the store with these options work on another tenant inside the block, and in tasks started inside it."""
    token = _scopes.set({**_scopes.get(), id(options): check_tenant(tenant)})
    try:
        yield
    finally:
        try:
            _scopes.reset(token)
        except ValueError:
            raise ConfigError(
                f"This tenant_scope of {tenant!r} ended in another context than it began in, as in a generator that "
                "FastAPI runs in a worker thread, so calls in between may have had another tenant. Make a store for "
                "each request, with tenant=; and tenant=None for a store that only works in scopes."
            ) from None


def tenant_of(options: StoreOptions) -> str:
    """Return the tenant of a call to the store with these options: that of the scope around it, else the option's.

    Raises:
        TenantUnknown: There is neither.
    """
    tenant = _scopes.get().get(id(options)) or options.tenant
    if tenant is None:
        raise TenantUnknown("No tenant: call inside a tenant_scope of the store, or make it with tenant=.")
    return tenant


class Tenancy:
    """Determines the tenant of a call, in this order: a scope around it; ``tenant_of(thread_id)``; the option.

    As in Locus' ``PgCheckpointer``, the call fails if ``tenant_of`` fails or finds no tenant. So nothing is ever stored
    under the wrong tenant.

    Args:
        options: The store's options.
        tenant_of: Returns the tenant of a thread id.
    """

    def __init__(self, options: StoreOptions, tenant_of: Callable[[str], str] | None = None) -> None:
        self._options = options
        self._tenant_of = tenant_of

    def of(self, thread_id: str | None = None) -> str:
        """Return the tenant of a call about a thread, or about all threads.

        Raises:
            TenantUnknown: ``tenant_of`` failed, or returned no tenant; or there is none.
        """
        scoped = _scopes.get().get(id(self._options))
        if scoped is not None:
            return scoped
        if self._tenant_of is None or thread_id is None:
            return tenant_of(self._options)
        try:
            return check_tenant(self._tenant_of(thread_id))
        except InvalidInput as error:
            raise TenantUnknown(f"tenant_of named no tenant for thread {thread_id!r}: {error}") from None
        except Exception as error:
            raise TenantUnknown(f"tenant_of could not place thread {thread_id!r}.") from error


def from_environment(value: Any) -> Any:
    """Return a value; of ``env:NAME`` that of the environment variable.

    Raises:
        UsageError: There is no such variable, or it is empty.
    """
    if not isinstance(value, str) or not value.startswith(_FROM_ENVIRONMENT):
        return value
    name = value.removeprefix(_FROM_ENVIRONMENT)
    held = os.environ.get(name)
    if not held:
        raise UsageError(f"There is no variable {name!r} in the environment.")
    return held
