"""Parts of an audit's page: `first_page` (key figures, pictures) and `sections` (everything else).

`notebook` is `fairbench.audit`, the same in Python. Which sections a page has, and in which order,
is up to its kind; `report`, one folder up, puts it together.
"""
