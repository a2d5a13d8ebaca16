"""The SQL of the family `memories`: items found by key, by field, by word and by meaning."""
