"""fairbench: uncertainty in algorithmic fairness, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbench.core import VERSION

if TYPE_CHECKING:
    from fairbench.evaluation.evaluator import Evaluator, evaluate
    from fairbench.evaluation.many_groups import pooled

__all__ = ["Evaluator", "evaluate", "pooled"]
__version__ = VERSION


def __getattr__(name: str) -> Any:
    """Import the evaluator when it is first asked for, so that ``--help`` need not wait for it."""
    if name in __all__:
        from fairbench.evaluation import evaluator, many_groups

        return getattr(many_groups if name == "pooled" else evaluator, name)
    raise AttributeError(f"module 'fairbench' has no attribute '{name}'")
