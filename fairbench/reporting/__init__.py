"""Documents, charts and pages, made from tables of metrics alone.

`document` has the one `Document` that every command makes, and its forms: terminal, HTML, Word,
LaTeX, Markdown, JSON. `runs`, `comparisons` and `searches` make documents of runs, of comparisons
and of searches, `page` the report of all runs, `figures` and `charts` draw. Nothing here computes a
metric. Begin with `document.model`.
"""
