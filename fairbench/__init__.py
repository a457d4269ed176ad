"""fairbench: how fair a model is, and how sure that is.

`fairbench.audit` judges predictions that one brings, `fairbench.evaluate` returns a table of
metrics of arrays, and `fairbench.run` carries out a run of the benchmark. The packages are listed
in docs/architecture.md, from `core`, which all others use, to `cli`, which uses all others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fairbench.core import VERSION

if TYPE_CHECKING:
    from fairbench.audits.calls import AuditReport, audit, gate
    from fairbench.cli.verbs.run import run
    from fairbench.evaluation.arrays import evaluate
    from fairbench.evaluation.evaluator import Evaluator
    from fairbench.evaluation.gate import Gate, GateError
    from fairbench.evaluation.many_groups import pooled

__all__ = [
    "AuditReport",
    "Evaluator",
    "Gate",
    "GateError",
    "audit",
    "evaluate",
    "gate",
    "pooled",
    "run",
]
__version__ = VERSION

_PLACES = {
    "AuditReport": "fairbench.audits.calls",
    "Evaluator": "fairbench.evaluation.evaluator",
    "Gate": "fairbench.evaluation.gate",
    "GateError": "fairbench.evaluation.gate",
    "audit": "fairbench.audits.calls",
    "evaluate": "fairbench.evaluation.arrays",
    "gate": "fairbench.audits.calls",
    "pooled": "fairbench.evaluation.many_groups",
    "run": "fairbench.cli.verbs.run",
}


def __getattr__(name: str) -> Any:
    """Import what is public when it is first asked for, so that ``--help`` need not wait for it."""
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name.startswith("_"):
        raise AttributeError(f"module 'fairbench' has no attribute '{name}'")
    from fairbench.cli.extensions import function

    return function(name)


def __dir__() -> list[str]:
    """List what is public, for the completion of names."""
    from fairbench.cli.extensions import FUNCTIONS, added

    return sorted([*__all__, *added(FUNCTIONS), "__version__"])
