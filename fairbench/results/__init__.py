"""The results folder: cells, runs and data, and the only code that knows where they lie.

`cells` has stored fits, `run_writer` writes the folder of a run and `runs` reads it, `catalogue`
finds runs, and `packs` are whole folders in a few files. Nothing here computes a metric. Begin with
`catalogue`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairbench.results.catalogue import Catalogue

__all__ = ["Catalogue"]


def __getattr__(name: str) -> Any:
    """Import the catalogue when it is first asked for."""
    if name in __all__:
        from fairbench.results.catalogue import Catalogue

        return Catalogue
    raise AttributeError(f"module 'fairbench.results' has no attribute '{name}'")
