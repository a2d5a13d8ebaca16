"""The client libraries, each behind the protocols in `interface`. Importing this package imports none of them.

Imports `dialect`, and no layer above. `interface` finds drivers by name; `failures` translates the libraries'
exceptions; `libraries` has one module for each client library, `login` decides about TLS and passwords, `wire` has
everything after the login: commands, answers, deadlines and sockets. Begin with `interface`, then `libraries/aiomysql`.
"""
