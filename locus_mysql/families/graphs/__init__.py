"""The family of graphs: every checkpoint of a thread, its values, and the writes of tasks.

LangGraph's savers use it. Imports `dialect/graphs`, `families/inspection`, and the layers below; never LangGraph.
Begin with `operations`, then `saving` and `loading`; `chains` and `parts` store large values as what each adds to the
one before, `store` has the public classes.
"""
