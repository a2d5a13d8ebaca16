"""Running operations: pools, retries, and the one place that awaits."""
