"""Long-term memory: items in namespaces, found by key, by field, by word and by meaning.

Imports `dialect/memories` and the layers below. Operations are generators that do no I/O. Begin with `operations`;
`writing`, `reading` and `nearest` carry them out, `vectors` encodes and compares embeddings, `store` has the public
classes.
"""
