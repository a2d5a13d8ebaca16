"""Unit tests of what is LangGraph's."""
