"""The session store of the Claude Agent SDK on MySQL.

Converts the SDK's keys and entries, and leaves storage to `families/transcripts`. Begin with `store`, the public class
with its operations.
"""

from ...extras import need

need("claude_agent_sdk", "The Claude Agent SDK", "claude-agent-sdk")

from .store import ClaudeSessionStore

__all__ = ["ClaudeSessionStore"]
