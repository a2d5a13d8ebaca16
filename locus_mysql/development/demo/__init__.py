"""The main job, to be watched: ``python -m locus_mysql demo``."""
