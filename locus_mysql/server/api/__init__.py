"""The JSON API beyond what Locus' client calls, with its description."""
