"""Documents, charts and pages, made from tables of metrics alone.

`document` has the one `Document` that every command makes, and its forms: terminal, HTML, Word,
LaTeX, Markdown, JSON. `runs` and `comparisons` make documents of runs and of comparisons,
`page` the report of all runs. `panels` says what figures show, and `charts` draws them;
`group_tables` fills sentences and tables from their toml files, `gate_files` are for CI. Nothing
here computes a metric. Begin with `document.model`.
"""
