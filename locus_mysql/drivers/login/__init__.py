"""Logging in. Imports client libraries only in functions, when a connection is opened.

`tls` decides whether TLS is used and with which context; `unencrypted_login` decides which server may get the
password, and encrypts it without TLS. `pymysql_family` makes the libraries do so where their options do not suffice,
as `libraries.mysql_connector` does for its own. Begin with `unencrypted_login`.
"""
