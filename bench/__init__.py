"""Benchmarks: save and load latency beside Locus' built-in backend and beside the floor, all in one run."""
