"""Unit tests of the memU integration."""
