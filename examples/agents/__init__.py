"""Chapter `agents`: Locus agents that remember, across processes and crashes.

Begin with `demo`. `agents` has the agent and its tools, `worker` the process that is killed, `long_conversation` the
conversation whose stored size is measured.
"""
