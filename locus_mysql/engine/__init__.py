"""Running operations: pools, retries, choice of server, creation of tables. Imports `drivers` and `dialect` only.

Operations (`operation`) are carried out by `execution`: it sends their batches (`transaction`), repeats them
(`retry`, `failures`), and lets secondaries answer (`secondaries`, `gtid_tracker`). What waits is a generator of
`commands`, which the two `loops` carry out, in a thread or in a task. `pool` lends connections; `idle`, `places`,
`watch`, `sides` and `kills` are its parts. `servers`, `primary`, `secondary` and `topology` choose and connect;
`synchronous` and `asynchronous` have the engines that other layers use. Begin with `operation`, then `execution`.
"""
