"""The contracts of the Locus agent SDK."""
