"""Looking inside in the terminal: ``threads``, ``show``, ``history``, ``diff``, ``search``, ``stats`` and ``rm``."""
