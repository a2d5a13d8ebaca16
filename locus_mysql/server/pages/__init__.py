"""The inspector's pages."""
