"""Transfers from any LangGraph saver, and from the tables of the package ``langgraph-checkpoint-mysql``.

Sources for the engine in `locus_mysql.transfer`; the targets are this package's own tables. Begin with `savers`;
`package_checkpoints` and `package_store` read the tables of the other package.
"""
