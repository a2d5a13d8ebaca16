"""One module for each client library; the only place that imports it.

Each has connections that log in with the library, give access to its socket or transport, and close it; `login` and
`wire` do the rest. Begin with `aiomysql`.
"""
