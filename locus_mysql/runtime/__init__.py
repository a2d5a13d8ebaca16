"""Code that stores of every family share. Imports `engine` and the layers below, and no family.

Begin with `database`, the connections that stores share, then `stores` and `methods`, by which operations become
methods of public classes. `transfer` has the protocols of exports and imports, `ledger` the operations on the
idempotency ledger, `telemetry` logs and spans; the other modules are named for the one thing that they contain.
"""
