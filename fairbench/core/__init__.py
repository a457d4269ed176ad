"""Basic tools: errors, checks of values, random generators, fingerprints, locks, whole files.

Nothing here knows of data sets, metrics or fairness. Begin with `errors`, whose `UserError` is the
one line that a person reads, and `files`, which writes whole files or none.
"""

VERSION = "0.1.0"
