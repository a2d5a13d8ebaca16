"""An agent of a shop. ADK looks for `root_agent` here."""

from .agent import root_agent

__all__ = ["root_agent"]
