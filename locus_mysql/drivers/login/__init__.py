"""Logging in: TLS, who may have the password, and what the libraries' options cannot express."""
