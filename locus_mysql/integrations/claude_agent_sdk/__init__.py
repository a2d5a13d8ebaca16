"""The session store of the Claude Agent SDK on MySQL.

Converts the SDK's keys and entries, and leaves storage to `families/transcripts`. Begin with `store`, the public class
with its operations.
"""

try:
    import claude_agent_sdk  # noqa: F401 - fails if it is not installed
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("claude_agent_sdk"):
        raise
    from ...errors import SetupError
    from ...extras import install_command

    raise SetupError(f"The Claude Agent SDK is not installed. Run {install_command('claude-agent-sdk')}.") from error

from .store import ClaudeSessionStore

__all__ = ["ClaudeSessionStore"]
