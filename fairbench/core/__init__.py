"""Basic tools: errors, options, texts, whole files, locks, fingerprints, processes, arrays.

Nothing here knows of data sets, metrics or fairness. Begin with `errors`, whose `UserError` is the
one line that a person reads, and `files`, which opens what strangers may have written and writes
whole files or none. `text` words numbers and escapes texts, `options` declares what a command
takes, `fingerprint` tells code and options apart, `processes` keeps two commands apart and ends
what takes too long, `memory` refuses what would not fit, and `arrays` has the random generators.
"""

VERSION = "0.1.0"
