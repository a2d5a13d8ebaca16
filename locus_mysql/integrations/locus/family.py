"""The family of Locus agents' states: `AGENTS`. It needs no Locus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config import MySQLConfig
from ...families.checkpoints.family import CheckpointFamily

if TYPE_CHECKING:
    from .agent_states import AgentDictOperations


class AgentFamily(CheckpointFamily):
    """The tables of Locus agents' states. See `Family`."""

    def operations(self, config: MySQLConfig) -> AgentDictOperations:
        """Return the operations on agents' states as dicts."""
        from .agent_states import AgentDictOperations

        return AgentDictOperations(config)


AGENTS = AgentFamily("agents", "Agents", "MySQLCheckpointer")
