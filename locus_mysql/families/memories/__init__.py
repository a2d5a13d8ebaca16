"""Long-term memory: items in namespaces, found by key, by field, by word and by meaning.

Operations are generators that do no I/O. Begin with `operations`; `writing`, `reading` and `nearest` carry them out,
`statements` has their SQL, `vectors` encodes and compares embeddings, `store` has the public classes.
"""
