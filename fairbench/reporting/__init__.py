"""Documents, charts and pages, made from tables of metrics alone.

`document` has the one `Document` that every command makes, and its forms: terminal, HTML, Word,
LaTeX, Markdown, JSON. `runs` and `comparisons` make documents of runs and of comparisons,
`page` the report of all runs, `figures` and `charts` draw. Nothing here computes a
metric. Begin with `document.model`.
"""
