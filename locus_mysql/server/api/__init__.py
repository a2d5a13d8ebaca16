"""The JSON API, except the endpoints for Locus' client, with its description.

A module of endpoints for each kind of data; they call the public stores. Begin with `endpoints`, the list of all,
then `threads`; `models` has the types of requests and answers, from which `openapi` generates the description.
"""
