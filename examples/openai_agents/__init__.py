"""Chapter `openai`: a session of the OpenAI Agents SDK that outlives its process.

Begin with `demo`. `assistant` is the agent with its scripted model, `worker` is the process that is killed.
"""
