"""Experiments: from a composed configuration to a finished run.

`contracts` says what a component must do, `compatibility` what cannot be combined, `pipeline` how
a run is prepared and finished, `execute` how missing cells are computed once, and `executors` by
whom. Components themselves are in ``algorithms/``, outside of the library. Begin with `execute`.
"""
