"""`create_app`: the service as one ASGI application."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Unpack

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import Lifespan

from ..config import ENVIRONMENT, Keywords
from ..drivers.interface import find_driver
from ..errors import ConfigError
from ..families.memories.embedding import EmbedFunction
from ..runtime.arguments import tenant_of
from ..runtime.database import Database, Where, share
from .access import Hosts, by_header
from .api import memories, openapi, session_variables, sessions, threads
from .dispatching import Admission, Dispatcher
from .limits import Limits
from .monitoring import HealthProbe, Metrics, MetricsAccess, health_endpoint, metrics_endpoint
from .pages import differences, records, rendering, sign_in, statistics, thread
from .pages import threads as thread_lists
from .pages.live import Live
from .problems import Problem
from .requests import Requests
from .routing import Endpoint, Group, LenientQuery, explain_no_route, explain_problem
from .services import Services
from .tokens import Caller, Tokens


def create_app(
    where: Where = ENVIRONMENT,
    *,
    tokens: Tokens | None = None,
    allowed_hosts: Collection[str] = (),
    allow_writes: bool = False,
    vacuum: bool = False,
    inspector: bool = True,
    cookie_key: bytes | None = None,
    sign_outs: Path | None = None,
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
        sign_outs: A file to which processes of one machine with the same key append ended sign-ins, so that all refuse
            them. None: each process refuses those that it ended itself.
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
    database, config, owned = share(None, where, options)
    if not getattr(find_driver(config.driver), "blocks", True):
        raise ConfigError(
            f"Driver {config.driver!r} has no synchronous side, which the service needs. Use driver='mysql-connector' "
            "or 'pymysql'."
        )
    services = Services(database, config, allow_writes=allow_writes, vacuum=vacuum, embed=embed, dims=dims, model=model)
    anyone = Caller("anyone", tenant_of(config), may_write=True)
    authenticate = by_header(tokens, anyone)
    counting = Metrics(database)
    api = [
        health_endpoint(HealthProbe(database), authenticate),
        *threads.LOCUS,
        *threads.ENDPOINTS,
        *(threads.VACUUM if vacuum else ()),
        *memories.ENDPOINTS,
        *sessions.ENDPOINTS,
        *session_variables.ENDPOINTS,
    ]
    described = openapi.openapi_endpoint(api, limits, secured=tokens is not None)
    beside = [] if metrics is None else [metrics_endpoint(counting, metrics)]
    groups = [Group([*api, described, *beside], authenticate)]
    if inspector:
        groups.append(_pages(sign_in.SignIns(tokens, anyone, cookie_key, sign_outs)))
    allowed = Hosts(allowed_hosts, loopback=tokens is None)
    dispatcher = Dispatcher(limits, Admission(limits.requests, database.config.pool_size))
    app = Starlette(
        routes=dispatcher.routes(groups),
        middleware=[Middleware(Requests, allowed, limits.send_s)],
        exception_handlers={Problem: explain_problem, HTTPException: explain_no_route},
        lifespan=_lifespan(services, database if owned else None),
    )
    app.router.redirect_slashes = False
    app.state.services, app.state.metrics = services, counting
    app.state.limits, app.state.groups = limits, groups
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


def _pages(sign_ins: sign_in.SignIns) -> Group:
    """Return the group of all pages, for users who have signed in."""
    rendering.compile_templates()  # before the first request
    live = Live(sign_ins.authenticate)
    endpoints = [
        *thread_lists.PAGES,
        *thread.PAGES,
        *differences.PAGES,
        Endpoint("GET", "/inspect/events", live.events, base=LenientQuery),
        *statistics.PAGES,
        *records.PAGES,
        *sign_in.PAGES,
        Endpoint("GET", "/login", sign_ins.ask, "open", base=LenientQuery),
        Endpoint("POST", "/login", sign_ins.sign_in, "open", form=True),
        Endpoint("POST", "/logout", sign_ins.sign_out, form=True),
        *rendering.PAGES,
    ]
    return Group(endpoints, sign_ins.authenticate, rendering.explained_as_page)
