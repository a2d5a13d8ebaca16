"""Chapter `adk`: a conversation of a Google ADK agent that outlives its process.

Begin with `demo`. `agents` is a folder of agents in the layout of ADK's command line, `worker` is the process that is
killed.
"""
