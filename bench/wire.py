"""Counting what goes over the wire, on the way to the server that a DSN names."""

from __future__ import annotations

from urllib.parse import quote

from locus_mysql import MySQLConfig
from tests.integration.proxy import WireProxy


class CountingProxy(WireProxy):
    """Forwards to the server of a DSN, and counts. For connections without TLS.

    Args:
        dsn: The server's.
    """

    def __init__(self, dsn: str) -> None:
        self._config = MySQLConfig(dsn=dsn)
        super().__init__(self._config.host, self._config.port)

    @property
    def dsn(self) -> str:
        """The same account and database, by way of this proxy."""
        config = self._config
        account = f"{quote(config.user, safe='')}:{quote(config.password.get_secret_value(), safe='')}"
        return f"mysql://{account}@127.0.0.1:{self.port}/{config.database}"
