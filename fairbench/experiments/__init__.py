"""Experiments: from a composed configuration to a finished run.

`configuration` makes plain values, ids and names of a configuration, and `build` the components
that it names, or refuses their combination. `contracts` says what a component must do and what a
cell is, `compute` fits one, `execute` has missing cells computed once, in whichever process, and
`pipeline` prepares, evaluates and finishes a run, and computes stored cells again. Components
themselves are in ``algorithms/`` and ``datasets/``, outside of the library. Begin with `execute`.
"""
