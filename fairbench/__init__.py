"""fairbench: uncertainty in algorithmic fairness, measured."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fairbench.core import VERSION

if TYPE_CHECKING:
    from fairbench.audits.gate.verdict import gate
    from fairbench.audits.pages.notebook import AuditReport, audit
    from fairbench.cli.python import run
    from fairbench.evaluation.evaluate_arrays import evaluate
    from fairbench.evaluation.evaluator import Evaluator
    from fairbench.evaluation.gate import Gate, GateError
    from fairbench.evaluation.many_groups import pooled
    from fairbench.reporting.rank import RankReport, rank

__all__ = [
    "AuditReport",
    "Evaluator",
    "Gate",
    "GateError",
    "RankReport",
    "audit",
    "evaluate",
    "gate",
    "pooled",
    "rank",
    "run",
]
__version__ = VERSION

_PLACES = {
    "AuditReport": "fairbench.audits.pages.notebook",
    "Evaluator": "fairbench.evaluation.evaluator",
    "Gate": "fairbench.evaluation.gate",
    "GateError": "fairbench.evaluation.gate",
    "RankReport": "fairbench.reporting.rank",
    "audit": "fairbench.audits.pages.notebook",
    "evaluate": "fairbench.evaluation.evaluate_arrays",
    "gate": "fairbench.audits.gate.verdict",
    "pooled": "fairbench.evaluation.many_groups",
    "rank": "fairbench.reporting.rank",
    "run": "fairbench.cli.python",
}


def __getattr__(name: str) -> Any:
    """Import what is public when it is first asked for, so that ``--help`` need not wait for it."""
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'fairbench' has no attribute '{name}'")


def __dir__() -> list[str]:
    """List what is public, for the completion of names."""
    return sorted([*__all__, "__version__"])
