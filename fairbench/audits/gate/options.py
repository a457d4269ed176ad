"""The options of a gate: conditions, in addition to the options of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from fairbench.audits.question import BINARY, Options
from fairbench.core.options import option
from fairbench.evaluation.conditions import REQUIRED, VERDICT, check_gate, conditions_of


@dataclass(frozen=True)
class Gating:
    """The options that a gate adds to those of an audit."""

    fail_if: tuple[str, ...] = option(
        (),
        "Conditions that must not hold, such as 'impact_ratio<0.8' or 'sex:equal_opportunity>0.1' "
        "(of one attribute): the exit status is 0 if the data show that none holds, 1 if they show "
        "that one does, and 3 if they are too few to decide.",
        shown="[CONDITION,...]",
        applies=(BINARY,),
    )
    require: str = option(
        VERDICT,
        "With fail_if=: how an undecided gate ends: verdict gives it an exit status of its own, 3; "
        "pass lets it fail (1).",
        choices=REQUIRED,
        applies=(BINARY,),
    )


@dataclass(frozen=True)
class GatedOptions(Gating, Options):
    """What an audit is asked for that is also a gate; its page leaves the gate its error rate."""

    def __post_init__(self) -> None:
        """Refuse what no file could mend."""
        super().__post_init__()
        conditions_of(self.fail_if)
        check_gate(self.require, self.interval)


def options_with(values: Mapping[str, Any]) -> Options:
    """Return the options of an audit with these values; of a gated one where there is a condition.

    Parameters
    ----------
    values : the values of options by the names of fields of `GatedOptions`.
    """
    if values.get("fail_if"):
        return GatedOptions(**values)
    names = {field.name for field in fields(Options)}
    return Options(**{name: value for name, value in values.items() if name in names})
