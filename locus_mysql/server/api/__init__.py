"""The JSON API with its description.

A module of endpoints for each kind of data; they call the public stores. Begin with `threads`; `models` has
the types of requests and answers, from which `openapi` generates the description.
"""
