"""The services of Google ADK on a real server, with the real framework."""
