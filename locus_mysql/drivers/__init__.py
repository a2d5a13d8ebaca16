"""The client libraries, each behind the protocols in `base`. Importing this package imports none of them."""
