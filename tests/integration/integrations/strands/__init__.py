"""The storage, the session repository and the memory store of Strands Agents on a real server, with real agents."""
