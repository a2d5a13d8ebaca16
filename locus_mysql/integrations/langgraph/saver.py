"""Base of both savers: their serialiser and the versions of channels."""

from __future__ import annotations

import random

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from .operations import LangGraphOperations


class GraphSaver(BaseCheckpointSaver[str]):
    """Base of the savers.

    LangGraph clones a saver to give it another serialiser (`with_allowlist`): the clone gets operations of its own.
    """

    _operations: LangGraphOperations

    @property
    def serde(self) -> SerializerProtocol:
        """Turns values into bytes and back."""
        return self._operations.serde

    @serde.setter
    def serde(self, serde: SerializerProtocol) -> None:
        self._operations = self._operations.with_serde(serde)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the version of a channel that follows ``current``.

        It has the form of LangGraph's own savers, a number of 32 digits and a random fraction that distinguishes
        branches, so that versions of threads that were copied from these continue to rise.
        """
        if current is None:
            number = 0
        elif isinstance(current, str):
            number = int(current.split(".")[0])
        else:
            number = int(current)
        return f"{number + 1:032}.{random.random():016}"  # noqa: S311 - distinguishes branches, protects no secret
