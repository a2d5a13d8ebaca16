"""Running operations: pools, retries, choice of server, creation of tables. Imports `drivers` and `dialect` only.

`execution` has the engines that other layers use, and runs operations (`operation`): it sends their batches, each on a
connection that `pool` lends, and repeats them (`retry`, `failures`). Code that waits is a generator of `commands`,
which the two `loops` execute, in a thread or in a task. `connection_slots` and `sides` are parts of the pool;
`group_commit` sends writes of calls that wait for a connection together. `servers` connects to the only server,
the folder cluster to the primary of several. Begin with `operation`, then `execution`.
"""
