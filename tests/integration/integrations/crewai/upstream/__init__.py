"""CrewAI's own tests of flows and memory, run with our classes in place of its own."""
