"""The key-value store of py-key-value on a real server, with its wrappers, its adapters and FastMCP's use of it."""
