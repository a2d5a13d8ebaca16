"""The session store of the Claude Agent SDK on a real server, with the real SDK."""
