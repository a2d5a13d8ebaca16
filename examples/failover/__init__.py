"""Chapter `failover`: a conversation goes on while the primary of a group of servers is killed.

Begin with `demo`. The group is the one of `ci/cluster`.
"""
