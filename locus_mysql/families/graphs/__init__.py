"""The family of graphs: every checkpoint of a thread, its values, and the writes of tasks.

LangGraph's savers use it. Imports `families/inspection` and the layers below; never LangGraph. Begin with `operations`,
then `saving` and `loading`; `values` stores large ones as what each adds to the one before, `payload` has the bytes of
rows, `statements` the SQL, `store` the public classes.
"""
