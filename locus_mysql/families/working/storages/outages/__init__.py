"""The logic of `fallback`: serving a session while its primary storage is unavailable, and replaying its writes later.

Nothing here calls a storage: generators yield the calls (`steps`), and `fallback` carries them out. Begin with
`failover`, which chooses the storage; `journal` queues writes, `replay` and `merging` write them to the primary
again.
"""
