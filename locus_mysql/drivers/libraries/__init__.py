"""One module for each client library; the only place that imports it."""
