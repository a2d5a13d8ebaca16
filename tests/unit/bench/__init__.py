"""Unit tests of the benchmark suite, without a server."""
