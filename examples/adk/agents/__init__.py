"""The folder that is given to ADK's command line: ``adk web examples/adk/agents --session_service_uri mysql+locus://…``."""
