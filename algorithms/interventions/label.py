"""The label whose rows an intervention compares."""

from __future__ import annotations

from fairbench.core.errors import UserError


def check_label(label: int) -> None:
    """Refuse an ``intervention.label`` that no row of a binary data set has."""
    if label not in (0, 1):
        raise UserError(f"intervention.label is {label}; it must be 0 or 1")
