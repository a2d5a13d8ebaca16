"""The folder that ADK's command line takes as argument: ``adk web examples/adk/agents --session_service_uri mysql+locus://…``."""
