"""Opens the storage that the first argument of a working memory names."""

from __future__ import annotations

from typing import cast

from pydantic import SecretStr

from ....config import Keywords, MySQLConfig
from ....errors import ConfigError
from ....runtime.database import Database
from .interface import Storage
from .mysql import MySQLStorage

_REDIS_SCHEMES = ("redis://", "rediss://", "unix://", "valkey://", "valkeys://")

DEFAULT_TENANT = "default"


def storage_of(
    where: str | SecretStr | MySQLConfig | Database | Storage | None, options: Keywords
) -> tuple[Storage, bool, str]:
    """Return the storage, whether it was opened here and must be closed, and the default tenant.

    Args:
        where: See `WorkingMemory`.
        options: Its other keywords.

    Raises:
        ConfigError: An option is unknown, wrong, or belongs to another storage.
    """
    text = where.get_secret_value() if isinstance(where, SecretStr) else where
    if isinstance(where, Storage) or (isinstance(text, str) and text.startswith(_REDIS_SCHEMES)):
        if others := options.keys() - {"tenant"}:
            raise ConfigError(f"{', '.join(sorted(others))}: these are options of MySQL; give the storage its own.")
        storage = where if isinstance(where, Storage) else _redis(cast(str, text))
        config = getattr(storage, "config", None)
        return storage, storage is not where, options.get("tenant", getattr(config, "tenant", DEFAULT_TENANT))
    mysql = MySQLStorage(where, **options)
    return mysql, True, mysql.config.tenant


def _redis(url: str) -> Storage:
    from .redis import RedisStorage

    return RedisStorage(url)
