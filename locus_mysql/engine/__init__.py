"""Running operations: pools, retries, choice of server, creation of tables. Imports `drivers` and `dialect` only.

`execution` runs operations (`operation`): it sends their batches (`transaction`), and repeats them (`retry`,
`failures`). Code that waits is a generator of `commands`, which the two `loops` execute, in a thread or in a task.
`pool` lends connections; `idle`, `connection_slots`, `watch` and `sides` are its parts, and `group_commit` sends writes
of calls that wait for one together. `servers`, `primary` and `topology` choose and connect; `synchronous` and
`asynchronous` have the engines that other layers use. Begin with `operation`, then `execution`.
"""
