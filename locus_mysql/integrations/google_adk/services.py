"""Services by URI, for ADK's command line: ``mysql+locus://user:password@host/database``.

ADK imports ``services.py`` from the folder of the agents, which calls `register_services`; or it reads
``services.yaml`` there, which names `session_service` and `memory_service`.
"""

from __future__ import annotations

from typing import Any, cast

from google.adk.cli.service_registry import get_service_registry

from ...config import Keywords
from ...errors import ConfigError
from .memories import AdkMemoryService
from .sessions import AdkSessionService

#: The scheme of the URIs.
SCHEME = "mysql+locus"


def session_service(uri: str, **options: Any) -> AdkSessionService:
    """Return the session service of a URI: a factory for ADK's service registry.

    Args:
        uri: A DSN with the scheme ``mysql+locus``, such as ``mysql+locus://user:password@host/app?tenant=acme``.
        options: Options of `MySQLConfig`, which ADK takes from ``--session_db_kwargs``. ADK's own ``agents_dir`` is
            ignored.

    Raises:
        ConfigError: The URI or an option is wrong.
    """
    return AdkSessionService(dsn_of(uri), **_options(options))


def memory_service(uri: str, **options: Any) -> AdkMemoryService:
    """Return the memory service of a URI, which searches by word; see `session_service`."""
    return AdkMemoryService(dsn_of(uri), **_options(options))


def register_services() -> None:
    """Register both services for URIs that begin with ``mysql+locus://``. Call it in ``services.py``."""
    registry = get_service_registry()
    registry.register_session_service(SCHEME, session_service)
    registry.register_memory_service(SCHEME, memory_service)


def dsn_of(uri: str) -> str:
    """Return the DSN in a URI.

    Raises:
        ConfigError: It has another scheme.
    """
    scheme, separator, rest = uri.partition("://")
    if not separator or scheme.lower() != SCHEME:
        raise ConfigError(f"The URI of the service must begin with {SCHEME}://.")
    return f"mysql://{rest}"


def _options(options: dict[str, Any]) -> Keywords:
    return cast(Keywords, {name: value for name, value in options.items() if name != "agents_dir"})
