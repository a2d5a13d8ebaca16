"""The SQL of the family `working`: variables, task states, notes and checkpoints of sessions."""
