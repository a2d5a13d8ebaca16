"""Copies from any LangGraph saver or store, by their public methods: `savers` and `stores`; `locations` opens them."""
