"""Tests of the stores of Pydantic AI."""
