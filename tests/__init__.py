"""The tests. `unit` needs no server; `integration`, `faults` and `cluster` (failover) use real MySQL servers.

`unit` and `integration` mirror the package: the test of `families/memories/searching.py` is
`tests/*/families/memories/test_searching.py`. Tests import the package, and each other's modules without ``test_``.
Begin with CONTRIBUTING.md, then `integration/conftest.py`, which has the server, the schemas and the drivers.
"""
