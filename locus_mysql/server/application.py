"""The service as one ASGI application: `create_app`."""

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
    limits: Limits = Limits(),  # noqa: B008 - frozen
    **options: Unpack[Keywords],
) -> Starlette:
    """The HTTP service, and the inspector in the browser, as an ASGI application.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        tokens: Who may do what. None: everybody may do everything, and it is the configured tenant's; then requests
            must be sent to a name of this machine, such as ``localhost``, or to one of ``allowed_hosts``.
        allowed_hosts: The names that requests may be sent to; empty for any, if there are tokens.
        allow_writes: Whether the inspector may change anything.
        vacuum: Whether the API may remove old checkpoints.
        inspector: Whether there is the inspector.
        cookie_key: What sign-ins to the inspector are signed with, at least 32 random bytes: with the same one, several
            processes behind a balancer take each other's. Who has it, and the digests of tokens, can sign in. None: it
            is drawn, and lives as long as the process.
        embed: With it the inspector searches long-term memory by meaning, too: takes a list of texts and gives their
            embeddings, at once or awaited, the same as were stored.
        dims: The width of its embeddings.
        limits: What is refused.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.

    Raises:
        ConfigError: Options contradict each other.

    Mounted in another application, whose lifespan is not passed on to it, it closes no connections: give it a
    `Database` that the other one closes.
    """
    if tokens is not None and "tenant" in options:
        raise ConfigError("Each token names its tenant; leave out either the tenant or the tokens.")
    database, config, owned = share(where, options)
    services = Services(database, config, allow_writes=allow_writes, vacuum=vacuum, embed=embed, dims=dims)
    anyone = Caller("anyone", config.tenant, may_write=True)
    authenticate = by_header(tokens, anyone)
    api = [*health_endpoints(), *locus_endpoints(), *api_endpoints(vacuum=vacuum)]
    routers = [Router([*api, openapi_endpoint(api, limits, secured=tokens is not None)], authenticate)]
    if inspector:
        routers.append(pages_router(tokens, anyone, cookie_key))

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        services.stopping.set()
        if dispatcher.processes is not None:
            await dispatcher.processes.close()
        if owned:
            await database.aclose()

    allowed = Hosts(allowed_hosts, loopback=tokens is None)
    # One is for what is no request: the pages that are live, and the question whether the database answers.
    dispatcher = Dispatcher(routers, limits, allowed, max(1, database.config.pool_size - 1))
    app = Application(dispatcher, lifespan=lifespan)
    app.state.services = services
    app.state.limits = limits  # for who serves it
    return app


class Application(Starlette):
    """Starlette, of which every request goes to one place.

    Its own routes decode a path before they look at it, and what it wraps around them would never see an error.

    Args:
        dispatcher: What answers.
        lifespan: As Starlette's.
    """

    def __init__(self, dispatcher: Dispatcher, lifespan: Lifespan[Starlette]) -> None:
        super().__init__(lifespan=lifespan)
        self.dispatcher = dispatcher

    def build_middleware_stack(self) -> ASGIApp:
        """What others have added, around what answers."""
        app: ASGIApp = self._answer
        for middleware, args, kwargs in reversed(self.user_middleware):
            app = middleware(app, *args, **kwargs)
        return app

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.dispatcher if scope["type"] == "http" else self.router)(scope, receive, send)
