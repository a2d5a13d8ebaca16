"""What users of CrewAI rely on; run by `test_in_its_environment`."""
