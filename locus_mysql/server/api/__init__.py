"""The JSON API beyond what Locus' client calls, with its description.

A module of endpoints for each kind of data; they call the public stores. Begin with `endpoints`, the list of all,
then `threads`; `models` has the types of requests and answers, from which `openapi` makes the description.
"""
