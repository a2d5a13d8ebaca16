"""memU's metadata store: tables and SQL."""
