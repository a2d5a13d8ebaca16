"""Chapter `claude`: a session of the Claude Agent SDK that outlives its process.

Begin with `demo`. `agent_worker` is a process that runs an agent with the SDK's program, `scripted_model` its
model; `entries` makes entries like those of the SDK, `worker` is a process that stores them and is killed.
"""
