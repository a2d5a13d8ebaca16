"""Several servers: finding the primary, and leaving one that has lost this role. Begin with `primary`.

With one server, nothing here is called, except that a connection through MySQL Router is checked like one of several
servers'. A connection to one of several is a `primary.PrimaryConnection`, which does its checks around each packet:
the engine's way from an operation to the wire is the same.
"""
