"""The results folder: cells, runs and data, and the only code that knows where they lie.

`runs` has the store of fits, and reads and writes the folder of a run; `record` and `tables` have
the shape of what is stored, and `tables` what runs say of which people, too; `catalogue` finds
runs, and `upkeep` is of sweeps, garbage, and packs, which are runs in one file. Nothing here
computes a metric. Begin with `catalogue`.
"""

from fairbench.results.catalogue import Catalogue

__all__ = ["Catalogue"]
