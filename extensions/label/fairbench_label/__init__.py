"""fairbench label: which rows to label next, and what the labels say whenever you stop.

Begin with `questions`: what is asked, which rows come next, and the answers. `session` has the
state file and what is known so far, `estimates` what labels say of a metric and how rows were
chosen, `active` the strategies that choose a group (Ji's thesis, chapter 3), `verb` the command.
"""
