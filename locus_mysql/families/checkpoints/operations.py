"""All operations on checkpoints: `CheckpointOperations`."""

from __future__ import annotations

from ...config import MySQLConfig
from .context import Context
from .estimates import Estimates
from .loading import Loading
from .maintenance import Removing, ThreadMaintenance
from .preconditions import Preconditions
from .queries import Queries
from .saving import Saving
from .statements.dialect import CheckpointDialect
from .whole_threads import WholeThreads


class CheckpointOperations:
    """The operations of one store, as generators that do no I/O. A tenant is the first argument of each.

    Args:
        config: The options.
        dialect: The tables.
    """

    def __init__(self, config: MySQLConfig, dialect: CheckpointDialect) -> None:
        self.context = context = Context(config, dialect)
        preconditions = Preconditions(context)
        self.loading = Loading(context)
        self.maintenance = ThreadMaintenance(context)
        self.saving = Saving(context, self.loading, self.maintenance, preconditions)
        self.removing = Removing(context)
        self.queries = Queries(context)
        self.estimates = Estimates(context)
        self.whole_threads = WholeThreads(context)
