"""`create_app`: the service as one ASGI application."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection
from typing import Unpack

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import Lifespan

from ..config import Keywords, MySQLConfig
from ..drivers.registry import find_driver
from ..errors import ConfigError
from ..families.memories.embedding import EmbedFunction
from ..runtime.database import Database, share
from .api.endpoints import api_endpoints
from .api.openapi import openapi_endpoint
from .authentication import by_header
from .callers import Caller
from .dispatching import Dispatcher
from .health import health_endpoints
from .hosts import Hosts
from .limits import Limits
from .locus import locus_endpoints
from .metrics_page import MetricsAccess, metrics_endpoint
from .pages.endpoints import pages_group
from .problems import Problem
from .requests import Requests
from .routing import Group, explain_no_route, explain_problem
from .services import Services
from .tokens import Tokens
from .turns import Turns


def create_app(
    where: str | SecretStr | MySQLConfig | Database | None = None,
    *,
    tokens: Tokens | None = None,
    allowed_hosts: Collection[str] = (),
    allow_writes: bool = False,
    vacuum: bool = False,
    inspector: bool = True,
    cookie_key: bytes | None = None,
    embed: EmbedFunction | None = None,
    dims: int | None = None,
    model: str = "",
    metrics: MetricsAccess | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    **options: Unpack[Keywords],
) -> Starlette:
    """Return the HTTP service and the inspector in the browser as one ASGI application.

    Args:
        where: A shared `Database`, a DSN, or a `MySQLConfig`; or give options as keywords.
        tokens: The access tokens. None: every client has full access to the configured tenant; then requests must be
            sent to a name of this machine, such as ``localhost``, or to one of ``allowed_hosts``.
        allowed_hosts: The host names that requests may be sent to; empty allows any, if there are tokens.
        allow_writes: Whether the inspector may change anything.
        vacuum: Whether the API may remove old checkpoints.
        inspector: Whether to serve the inspector.
        cookie_key: The key that signs sign-ins to the inspector, at least 32 random bytes. Processes behind a load
            balancer that share it accept each other's sign-ins. Anyone with this key and the digests of tokens can sign
            in. None: a random key that lives as long as the process.
        embed: Lets the inspector search long-term memory by meaning: a function, blocking or asynchronous, that takes
            a list of texts and returns their embeddings, as those that were stored.
        dims: The width of embeddings: of the function's, and of those that requests of the API send.
        model: The name of the model of all these embeddings, as `MemoryStore` has it; by default that of ``embed``.
        metrics: Who may read ``GET /metrics``, which counts all tenants' rows together: callers with a token
            (``"token"``; everyone, if there are no tokens), or everyone (``"open"``). None: it is not served.
        limits: The limits of requests.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.

    Raises:
        ConfigError: Options contradict each other.

    Mounted in an application that does not pass its lifespan on, it closes no connections: give it a `Database` that
    the outer application closes.
    """
    if tokens is not None and "tenant" in options:
        raise ConfigError("Each token names its own tenant. Leave out either the tenant or the tokens.")
    database, config, owned = share(where, options)
    if not getattr(find_driver(config.driver), "blocks", True):
        raise ConfigError(
            f"Driver {config.driver!r} has no synchronous side, which the service needs. Use driver='mysql-connector' "
            "or 'pymysql'."
        )
    services = Services(database, config, allow_writes=allow_writes, vacuum=vacuum, embed=embed, dims=dims, model=model)
    anyone = Caller("anyone", config.tenant, may_write=True)
    authenticate = by_header(tokens, anyone)
    api = [*health_endpoints(authenticate), *locus_endpoints(), *api_endpoints(vacuum=vacuum)]
    described = openapi_endpoint(api, limits, secured=tokens is not None)
    beside = [] if metrics is None else [metrics_endpoint(metrics)]
    groups = [Group([*api, described, *beside], authenticate)]
    if inspector:
        groups.append(pages_group(tokens, anyone, cookie_key))
    allowed = Hosts(allowed_hosts, loopback=tokens is None)
    dispatcher = Dispatcher(limits, Turns(limits.requests, database.config.pool_size))
    app = Starlette(
        routes=dispatcher.routes(groups),
        middleware=[Middleware(Requests, allowed, limits.send_s)],
        exception_handlers={Problem: explain_problem, HTTPException: explain_no_route},
        lifespan=_lifespan(services, database if owned else None),
    )
    app.router.redirect_slashes = False
    app.state.services, app.state.limits, app.state.groups = services, limits, groups
    return app


def _lifespan(services: Services, owned: Database | None) -> Lifespan[Starlette]:
    """Return the lifespan of an application, at whose end its own database is closed."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        services.stopping.set()
        if owned is not None:
            await owned.aclose()

    return lifespan
