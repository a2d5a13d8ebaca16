"""The contracts of the Locus agent SDK: checkpointers, storage backends, long-term memory and working memory.

Converts Locus' types, and leaves storage to `families`. Begin with `checkpointer`, then `operations`; `agent_states`
needs no Locus, so that the service and the commands work without it; `transfer` copies threads from and to
Locus' own checkpointers.
"""
