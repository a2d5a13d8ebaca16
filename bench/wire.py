"""Counts the bytes and round trips on the wire to a DSN's server."""

from __future__ import annotations

from urllib.parse import quote

from locus_mysql import MySQLConfig
from tests.integration.proxy import WireProxy


class CountingProxy(WireProxy):
    """Forwards connections without TLS to the server of a DSN, and counts their bytes and round trips.

    Args:
        dsn: The server's DSN.
    """

    def __init__(self, dsn: str) -> None:
        self._config = MySQLConfig(dsn=dsn)
        super().__init__(self._config.host, self._config.port)

    @property
    def dsn(self) -> str:
        """The DSN of the same account and database through this proxy."""
        config = self._config
        account = f"{quote(config.user, safe='')}:{quote(config.password.get_secret_value(), safe='')}"
        return f"mysql://{account}@127.0.0.1:{self.port}/{config.database}"
