"""The OpenAI Agents SDK's own tests of sessions, run with ours in place of its own."""
