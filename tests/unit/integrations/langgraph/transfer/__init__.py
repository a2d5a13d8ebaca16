"""Unit tests of the LangGraph integration."""
