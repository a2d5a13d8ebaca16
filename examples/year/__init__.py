"""The chapter on a team's year: upgrades, rotated keys, backups and another server, and nothing is lost.

Begin with `demo`. `memory` writes and reads every family, and `commands` is the command line of versions to come.
"""
