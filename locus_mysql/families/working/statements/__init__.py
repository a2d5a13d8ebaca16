"""The SQL of working memory. Begin with `tables`, then `writing`."""
