"""Chapter `adk`: a conversation of a Google ADK agent that outlives its process.

Begin with `story`. `agents` is a folder of agents as ADK's command line wants it, `worker` is the process that is
killed.
"""
