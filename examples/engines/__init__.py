"""The chapter on engines: one program on MySQL and on OceanBase, of which only the DSN changes."""
