"""The fixture ``fairbench_gate`` for tests of models, which pytest finds by an entry point.

Nothing of fairbench is imported before a test asks for a verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fairbench.evaluation.gate import Gate


@pytest.fixture
def fairbench_gate() -> Callable[..., Gate]:
    """Return a function that judges predictions, and fails the test unless the gate passes.

    It takes what :func:`fairbench.gate` takes, and returns the gate that passes. A gate that is
    open fails the test, too: a skipped or expected failure would look like a pass.
    """

    def gate(frame: Any = None, **options: Any) -> Gate:
        """Judge a gate; fail the test if it does not pass."""
        __tracebackhide__ = True
        from fairbench.audits.calls import gate as judge
        from fairbench.core.errors import UserError

        try:
            verdict = judge(frame, **options)
        except UserError as error:
            pytest.fail(f"the gate cannot be judged: {error}", pytrace=False)
        if not verdict:
            pytest.fail(verdict.line, pytrace=False)
        return verdict

    return gate
