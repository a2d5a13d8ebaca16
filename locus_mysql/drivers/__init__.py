"""The client libraries, each behind the protocols in `interface`. Importing this package imports none of them."""
