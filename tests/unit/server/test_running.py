"""Connections of the service: timeouts, acknowledgements and idle limits."""

from __future__ import annotations

import inspect
import socket

import uvicorn
from locus.memory.backends import HTTPCheckpointer

from locus_mysql import Database
from locus_mysql.server.application import create_app
from locus_mysql.server.limits import Limits
from locus_mysql.server.running import Server, bind, server_of

#: How long httpx, and therefore Locus' client, reuses an idle connection, in seconds.
HTTPX_KEEPALIVE_EXPIRY_S = 5


def test_a_request_is_given_up_before_locus_client_gives_up() -> None:
    assert Limits().request_s < inspect.signature(HTTPCheckpointer).parameters["timeout"].default


def test_answers_are_sent_without_waiting_for_acknowledgements() -> None:
    for bound in bind("127.0.0.1", 0):
        with bound:
            assert bound.proto == socket.IPPROTO_TCP  # else asyncio leaves Nagle's algorithm on


def test_an_idle_connection_is_kept_for_longer_than_clients_use_it_again() -> None:
    with Database("mysql://root@localhost/nowhere", driver="pymysql") as database:
        server = server_of(create_app(database))
    assert server.config.timeout_keep_alive > HTTPX_KEEPALIVE_EXPIRY_S


def test_overridden_methods_of_uvicorn_exist() -> None:
    """Otherwise our overrides would never be called."""
    overridden = {name for name, value in vars(Server).items() if callable(value) and not name.startswith("_")}
    assert len(overridden) > 2
    assert overridden <= {*dir(uvicorn.Server)}
