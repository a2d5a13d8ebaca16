"""Chapter `claude`: a session of the Claude Agent SDK that outlives its process.

Begin with `story`. `entries` makes entries like those of the SDK, `worker` is the process that is killed.
"""
