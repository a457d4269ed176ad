"""The atlas: what many approaches on many tasks say together.

`approaches` makes one table of many runs, `values` arrays of it, and `report` all that is said.
`ranks`, `frontiers`, `unprocessing`, `claims` and `few_tasks` are its parts.
"""
