"""The command line: options in, a document out.

`main` finds the verb, `command` and `options` read its words, ``verbs`` has one file for each verb;
`run`, `command_line` and `tuning` carry out runs and sweeps. There are no statistics and no
verdicts here. Begin with `main`.
"""
