"""Unit tests of the integration of Strands Agents."""
