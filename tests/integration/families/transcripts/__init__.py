"""Transcripts on a real server."""
