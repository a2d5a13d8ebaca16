"""Encryption at rest, on a real server: no clear text in any column, bound rows, rotation of keys."""
