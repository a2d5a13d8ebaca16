"""Long-term memory: items in namespaces, found by key, by field, by word and by meaning. Does no I/O itself."""
