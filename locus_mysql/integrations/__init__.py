"""Classes for agent frameworks: their types in, their types out."""
