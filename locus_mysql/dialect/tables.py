"""What the tables of every family have in common."""

#: Begins the comment of each table; the layout's version follows.
LAYOUT_COMMENT = "locus-mysql layout "
