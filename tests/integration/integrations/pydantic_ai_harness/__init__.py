"""Tests of `locus_mysql.integrations.pydantic_ai_harness` with Pydantic AI Harness itself."""
