"""CrewAI's flows and memory on a real server. Its requirements exclude those of other frameworks, so it runs apart."""
