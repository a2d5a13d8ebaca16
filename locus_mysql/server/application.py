"""`create_app`: the service as one ASGI application."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection
from typing import Unpack

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from ..config import Keywords, MySQLConfig
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
from .pages.endpoints import pages_router
from .routing import Router
from .services import Services
from .tokens import Tokens


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
    services = Services(database, config, allow_writes=allow_writes, vacuum=vacuum, embed=embed, dims=dims, model=model)
    anyone = Caller("anyone", config.tenant, may_write=True)
    authenticate = by_header(tokens, anyone)
    api = [*health_endpoints(authenticate), *locus_endpoints(), *api_endpoints(vacuum=vacuum)]
    described = openapi_endpoint(api, limits, secured=tokens is not None)
    beside = [] if metrics is None else [metrics_endpoint(metrics)]
    routers = [Router([*api, described, *beside], authenticate)]
    if inspector:
        routers.append(pages_router(tokens, anyone, cookie_key))
    allowed = Hosts(allowed_hosts, loopback=tokens is None)
    # One connection is left for work outside of requests: live pages and health checks.
    dispatcher = Dispatcher(routers, limits, allowed, max(1, database.config.pool_size - 1))
    app = Application(dispatcher, lifespan=_lifespan(dispatcher, services, database if owned else None))
    app.state.services, app.state.limits = services, limits  # `running.run` reads the limits
    return app


def _lifespan(dispatcher: Dispatcher, services: Services, owned: Database | None) -> Lifespan[Starlette]:
    """Return the lifespan of an application, at whose end its processes and its own database are closed."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        services.stopping.set()
        if dispatcher.processes is not None:
            await dispatcher.processes.close()
        if owned is not None:
            await owned.aclose()

    return lifespan


class Application(Starlette):
    """A Starlette application that passes every request to one dispatcher.

    Starlette's own routes decode a path before they match it, and its middleware would never see an error.

    Args:
        dispatcher: Answers the requests.
        lifespan: As in Starlette.
    """

    def __init__(self, dispatcher: Dispatcher, lifespan: Lifespan[Starlette]) -> None:
        super().__init__(lifespan=lifespan)
        self.dispatcher = dispatcher

    def build_middleware_stack(self) -> ASGIApp:
        """Return the dispatcher within the middleware that users added."""
        app: ASGIApp = self._answer
        for middleware, args, kwargs in reversed(self.user_middleware):
            app = middleware(app, *args, **kwargs)
        return app

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.dispatcher if scope["type"] == "http" else self.router)(scope, receive, send)
