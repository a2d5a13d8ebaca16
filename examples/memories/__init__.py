"""Chapter `memories`: facts from one conversation, used in another one.

Begin with `demo`. `agents` has the agent with its memory manager, `worker` the process of the other conversation.
"""
