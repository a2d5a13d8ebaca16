"""The sessions of the OpenAI Agents SDK on a real server, with the real SDK."""
