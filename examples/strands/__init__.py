"""Chapter `strands`: a Strands agent that outlives its process, and two processes on one session.

Begin with `demo`. `support` is the agent with its scripted model and the notes, `worker` is the other process.
"""
