"""Embedded databases, which the program runs by itself: see `Database.embedded`."""

from .engine.embedded import stop_server

__all__ = ["stop_server"]
