"""The families of tables: checkpoints, graphs, long-term memories, working memory. None of them imports another one."""
