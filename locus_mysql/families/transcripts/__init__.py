"""Transcripts: conversations of frameworks as ordered items with ids, and a state that changes together with them.

Operations are generators that do no I/O. Begin with `records`, which defines the key of a transcript, then
`operations`; `writing` carries out appends; `statements` has the SQL; `store` has the public classes.
Integrations build a framework's contract on `TranscriptOperations`.
"""
