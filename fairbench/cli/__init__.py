"""The command line: options in, a document out.

`main` finds the verb, of ``verbs`` or of an extension (`extensions`). `command` reads its words
into the dataclass that declares its options, and writes its help. `verbs.run`, `command_line` and
`jobs` carry out runs and sweeps. There are no statistics and no verdicts here. Begin with `main`.
"""
