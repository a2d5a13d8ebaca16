"""Transcripts without a server."""
