"""``serve`` runs the HTTP service with the inspector; ``token`` generates a token for it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import logging
import logging.config
import os
import re
import secrets
import ssl
import stat
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..config import MySQLConfig
from ..errors import ConfigError, SetupError
from ..extras import install_command
from ..runtime.regular_files import read_regular
from ..signals import StopRequested
from .arguments import (
    OK,
    add_connection,
    add_prefix,
    add_tenant,
    notify,
    options_of,
)

if TYPE_CHECKING:
    from ..server.limits import Limits
    from ..server.tokens import Tokens

#: Reports a message about the start, with its level.
Announce: TypeAlias = Callable[[int, str], None]

#: The environment variable that may contain the tokens instead of a file.
TOKENS_VARIABLE = "LOCUS_MYSQL_TOKENS"

#: The environment variable that may contain the cookie key instead of a file.
COOKIE_KEY_VARIABLE = "LOCUS_MYSQL_COOKIE_KEY"

DEFAULT_PORT = 8765

MOST_WORKERS = 64

#: Paths that percent-encoding does not change.
_SEGMENT = r"[A-Za-z0-9._~!$&'()*+,;=:@-]+"
_ROOT_PATH = re.compile(rf"(?:{_SEGMENT}(?:/{_SEGMENT})*)?")

#: Largest size of a file with a cookie key.
MAX_KEY_BYTES = 65_536

#: Default number of seconds during which a call is retried while the database is unavailable: less than the timeout of
#: clients (Locus' is 30 s), so that they receive the error.
RETRY_DEADLINE_S = 10.0

#: Default number of seconds beyond a request's deadline after which the server ends its SELECTs.
ENDED_BY_SERVER_S = 5.0


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``serve``."""
    add_connection(parser)
    add_tenant(parser, "threads, memories and sessions to serve, where no tokens are needed")
    add_prefix(parser)
    _add_access(parser)
    _add_limits(parser)
    parser.add_argument(
        "--root-path",
        default="",
        metavar="PATH",
        help="the path under which a proxy publishes the service, and which it strips",
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate (PEM) for HTTPS")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key (PEM)")
    parser.add_argument(
        "--metrics",
        choices=("token", "open"),
        help="serve /metrics for Prometheus, to requests with a token or to all (not served); it counts rows of all "
        "tenants",
    )
    parser.add_argument("--quiet", action="store_true", help="log only warnings and errors")
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="lines of text, or of JSON for programs (text)"
    )


def _add_access(parser: argparse.ArgumentParser) -> None:
    """Add the address, and the arguments that decide who may do what."""
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (127.0.0.1); elsewhere, tokens are needed")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"TCP port ({DEFAULT_PORT}); 0 for a free one")
    parser.add_argument(
        "--tokens",
        type=Path,
        metavar="FILE",
        help=f"the file of tokens, with entries made by `token`; or its text in the environment as {TOKENS_VARIABLE}",
    )
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that requests may be sent to; may be given more than once (any, where tokens are needed)",
    )
    parser.add_argument(
        "--allow-writes", action="store_true", help="allow branching, copying and deleting threads in the inspector"
    )
    parser.add_argument(
        "--vacuum", action="store_true", help="allow tokens with write access to remove old threads and checkpoints"
    )
    parser.add_argument(
        "--dims", type=int, metavar="N", help="accept embeddings of this width in the API (none), to search by meaning"
    )
    parser.add_argument(
        "--model", default="", metavar="NAME", help="the model of these embeddings, as stores name it (an unnamed one)"
    )
    parser.add_argument("--no-inspector", action="store_true", help="serve only the JSON API, without the inspector")
    parser.add_argument(
        "--cookie-key",
        type=Path,
        metavar="FILE",
        help="the key that signs sign-ins to the inspector, at least 32 random bytes, shared by several processes "
        f"behind one load balancer; or its text in the environment as {COOKIE_KEY_VARIABLE} (default: a random key)",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the limits of requests, and the numbers of processes."""
    parser.add_argument(
        "--max-body-bytes", type=int, metavar="BYTES", help="the largest request body, in bytes (8388608)"
    )
    parser.add_argument(
        "--max-requests",
        type=int,
        metavar="COUNT",
        help="requests carried out at once; one tenant may have half of them (128)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="COUNT",
        help="number of serving processes, each with its own connections and limits (1)",
    )


def add_token(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``token``."""
    parser.add_argument("name", help="the name of its owner, for the log")
    parser.add_argument(
        "--tenant",
        default="default",
        help="the tenant whose threads, memories and sessions it gives access to (default)",
    )
    parser.add_argument("--write", action="store_true", help="allow writes; without this it may only read")


def token(arguments: argparse.Namespace) -> int:
    """Generate a token. Its entry for the file goes to the standard output, the token itself to the standard error."""
    from ..server.tokens import new_token

    made = new_token(arguments.name, arguments.tenant, "write" if arguments.write else "read")
    print(f"\n{made.entry}", end="", flush=True)
    notify(f"The token, which is shown only once: {made.secret}")
    if sys.stdout.isatty():
        notify("Append the entry above it to a file, with >> tokens.toml.")
    return OK


def serve(arguments: argparse.Namespace) -> int:
    """Serve until a signal asks to stop."""
    _need_server()
    from ..server.application import create_app
    from ..server.pages.sign_in import KEY_BYTES
    from ..server.running import SERVICE, bind, check_database, is_local
    from ..server.running import serve as serve_at

    def announce(level: int, text: str) -> None:
        """Report a message about the start: in the log, if that is JSON, else to the user, whatever its level."""
        if arguments.log_format == "json":
            SERVICE.log(level, "%s", text)
        else:
            notify(text)

    logging.config.dictConfig(_logs_of(arguments))
    config = _service_config(arguments)
    tokens = _tokens(arguments.tokens, announce)
    if tokens is not None and arguments.tenant is not None:
        raise ConfigError("Each token names its own tenant, so --tenant has no effect. Leave it out.")
    _check(arguments)
    root_path = _root_path(arguments.root_path)
    limits = _limits(arguments)
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(one) for one in bind(arguments.host, arguments.port)]
        if tokens is None and not is_local(sockets):
            raise ConfigError(
                f"Other machines can reach {arguments.host!r}, so the service needs tokens. Create one with "
                "`python -m locus_mysql token NAME --write >> tokens.toml`, and give --tokens tokens.toml."
            )
        sign_outs = None
        if arguments.workers > 1:
            sign_outs = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="locus-mysql-")), "sign-outs")
        create = functools.partial(
            create_app,
            config,
            tokens=tokens,
            allowed_hosts=arguments.allowed_host,
            allow_writes=arguments.allow_writes,
            vacuum=arguments.vacuum,
            inspector=not arguments.no_inspector,
            cookie_key=_cookie_key(arguments.cookie_key, announce) or secrets.token_bytes(KEY_BYTES),
            sign_outs=sign_outs,
            dims=arguments.dims,
            model=arguments.model,
            metrics=arguments.metrics,
            limits=limits,
        )
        create()  # reports wrong options before the start
        asyncio.run(check_database(config))
        scheme = "http" if arguments.tls_cert is None else "https"
        port = sockets[0].getsockname()[1]

        def ready() -> None:
            host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
            announce(logging.INFO, f"Serving at {scheme}://{host}:{port}{root_path}/ until Ctrl-C.")
            if tokens is None:
                announce(logging.WARNING, "Without tokens: every program on this machine may read and write.")

        with contextlib.suppress(StopRequested):  # Uvicorn raises the signal again when it has stopped
            serve_at(
                create,
                sockets,
                limits,
                workers=arguments.workers,
                ready=ready,
                root_path=root_path,
                ssl_certfile=arguments.tls_cert,
                ssl_keyfile=arguments.tls_key,
                log_config=_logs_of(arguments),
            )
    return OK


def _service_config(arguments: argparse.Namespace) -> MySQLConfig:
    """Return the configuration, with the service's defaults of two options."""
    from ..server.limits import Limits

    config = MySQLConfig.from_env(**options_of(arguments))
    defaults = {"retry_deadline_s": RETRY_DEADLINE_S, "select_timeout_s": Limits().request_s + ENDED_BY_SERVER_S}
    return config.model_copy(
        update={name: value for name, value in defaults.items() if name not in config.model_fields_set}
    )


def _check(arguments: argparse.Namespace) -> None:
    """Check certificate, port and number of workers.

    Raises:
        ConfigError: One of them is invalid.
    """
    if (arguments.tls_cert is None) != (arguments.tls_key is None):
        raise ConfigError("--tls-cert and --tls-key belong together; give both.")
    if arguments.tls_cert is not None:
        _check_certificate(arguments.tls_cert, arguments.tls_key)
    if not 0 <= arguments.port <= 65535:
        raise ConfigError("--port must be from 0 to 65535.")
    if not 1 <= arguments.workers <= MOST_WORKERS:
        raise ConfigError(f"--workers must be from 1 to {MOST_WORKERS}.")


def _limits(arguments: argparse.Namespace) -> Limits:
    """Return the limits of the service; those that are not given have their defaults."""
    from ..server.limits import Limits

    given = {
        "body_bytes": arguments.max_body_bytes,
        "requests": arguments.max_requests,
    }
    return Limits(**{name: value for name, value in given.items() if value is not None})


def _root_path(given: str) -> str:
    """Return the path that a proxy removes, with a leading slash and without a trailing one; empty without a path.

    Raises:
        ConfigError: It has characters that need percent-encoding, so that the paths of requests would never match.
    """
    path = given.strip("/")
    if _ROOT_PATH.fullmatch(path) is None or {".", ".."} & {*path.split("/")}:
        raise ConfigError(
            f"--root-path {given!r:.100} cannot be a path of this service: it may hold ASCII letters, digits, "
            "- . _ ~ ! $ & ' ( ) * + , ; = : @ and single slashes, and no segment '.' or '..'. Have the proxy publish "
            "the service under such a path."
        )
    return f"/{path}" if path else ""


def _tokens(file: Path | None, announce: Announce) -> Tokens | None:
    """Return the tokens of a file or of the environment; None without any."""
    from ..server.tokens import Tokens

    if file is not None:
        try:
            found = Tokens(path=file)
            may_be_written = _others_may(file, stat.S_IWGRP | stat.S_IWOTH)
        except (ConfigError, OSError) as error:
            raise ConfigError(f"--tokens {file}: {error}") from None
        if may_be_written:
            announce(
                logging.WARNING,
                f"Other users of this machine may write to {file}, and could add their own tokens: chmod go-w {file}",
            )
        return found
    text = os.environ.get(TOKENS_VARIABLE)
    try:
        return Tokens(text) if text else None
    except ConfigError as error:
        raise ConfigError(f"{TOKENS_VARIABLE}, which must hold the file's text, not its name: {error}") from None


def _check_certificate(certificate: Path, key: Path) -> None:
    """Check that two files are a certificate and its key."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # including ssl.SSLError
        raise ConfigError(f"--tls-cert {certificate} and --tls-key {key} cannot be used: {error.strerror}.") from None


def _cookie_key(file: Path | None, announce: Announce) -> bytes | None:
    """Return the cookie key of a file or of the environment, stripped; None without one."""
    if file is None:
        text = os.environ.get(COOKIE_KEY_VARIABLE)
        return os.fsencode(text.strip()) if text else None
    try:
        key = read_regular(file, MAX_KEY_BYTES, follow_links=True).strip()
        may_be_read = _others_may(file, stat.S_IRGRP | stat.S_IROTH)
    except OSError as error:
        raise ConfigError(f"--cookie-key {file}: {error.strerror or 'it cannot be read'}.") from None
    if may_be_read:
        announce(
            logging.WARNING,
            f"Other users of this machine may read {file}, and could sign in with it and a token's digest: chmod go-r "
            f"{file}",
        )
    return key


def _others_may(file: Path, bits: int) -> bool:
    """Return whether the mode of a file gives these permissions to other users."""
    return os.name == "posix" and bool(file.stat().st_mode & bits)


def _logs_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return a configuration of logging to the standard error.

    Uvicorn logs only errors, as it warns about each malformed request.
    """
    level, form = "WARNING" if arguments.quiet else "INFO", arguments.log_format
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
            "json": {"()": "locus_mysql.server.requests.JsonFormatter"},
        },
        "handlers": {"standard error": {"class": "logging.StreamHandler", "formatter": form}},
        "root": {"handlers": ["standard error"], "level": "WARNING"},
        "loggers": {"locus_mysql": {"level": level}, "uvicorn": {"level": "ERROR"}},
    }


def _need_server() -> None:
    """Check that the extra ``server`` is installed."""
    from ..server import LIBRARIES

    for library in LIBRARIES:
        if find_spec(library) is None:
            raise SetupError(f"`serve` needs {library}, which is not installed. Run {install_command('server')}.")
