"""Chapter `working`: a session that survives the death of its process, and of its Redis.

Begin with `demo`. `agents` has the agent, `worker` the process that is killed, `redis_server` the Redis that is
killed.
"""
