"""Chapter `pydantic`: a conversation of a Pydantic AI agent that outlives its process.

Begin with `demo`. `agent` is the agent on a scripted model, `worker` is the process that is killed.
"""
