"""Chapter `harness`: an agent of Pydantic AI Harness that is killed in a tool call, and what it remembers.

Begin with `demo`. `agent` is the agent on a scripted model, `worker` is the process that is killed.
"""
