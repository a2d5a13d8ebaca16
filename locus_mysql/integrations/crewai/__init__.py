"""The states of CrewAI's flows and the records of its memory on MySQL: `flows` and `memories`, the public classes."""

from ...extras import need

need("crewai.memory.storage.backend", "CrewAI 1.15.30 or later", "crewai")

from .flows import CrewFlowPersistence
from .memories import CrewMemoryStorage

__all__ = ["CrewFlowPersistence", "CrewMemoryStorage"]
