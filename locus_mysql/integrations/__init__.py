"""Classes for agent frameworks, which take and return the framework's types. A folder for each framework.

Imports `transfer`, `families` and the layers below. Each folder imports its own framework only, and no other folder.
Begin with `locus/checkpointer`, `langgraph/operations` or `memu/database`; `locus_sdk` checks for the Locus SDK.
"""
