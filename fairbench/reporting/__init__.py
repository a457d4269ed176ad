"""Documents, charts and pages, made from tables of metrics alone.

`document` has the one `Document` that every command makes, and its forms: terminal, HTML, Word,
LaTeX, Markdown, JSON. `page` is the report of all runs, `leaderboard` the one of many data sets.
Nothing here computes a metric. Begin with `document.model`.
"""
