"""The expected cost of fits that are not yet made, by the finished runs of a results folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairbench.results.catalogue import Catalogue

_COMPONENTS = ("dataset", "learner", "intervention", "method")


@dataclass(frozen=True)
class _Cost:
    """CPU seconds of a fit, and the number of rows of its run; 0 if that is not recorded."""

    seconds: float
    rows: int


@dataclass(frozen=True)
class Prices:
    """What fits have cost: by study, and by data set and components whatever their options.

    Attributes
    ----------
    exact : `cost_key` of a study -> the cost of its fits.
    by_components : names of the data set and the components -> the cost of such fits.
    """

    exact: dict[str, _Cost] = field(default_factory=dict)
    by_components: dict[tuple[str, ...], _Cost] = field(default_factory=dict)

    @classmethod
    def of(cls, catalogue: Catalogue) -> Prices:
        """Return the prices that the finished runs of a catalogue tell."""
        prices = cls()
        for run in catalogue:
            environment = run.environment
            cost = environment.get("cost", {})
            rows = environment.get("task", {}).get("rows", 0)
            if "key" in cost:
                paid = _Cost(float(cost["seconds_per_cell"]), int(rows))
                prices.exact[cost["key"]] = prices.by_components[_names(run.choices)] = paid
        return prices

    def seconds(self, key: str, rows: int, choices: Mapping[str, str]) -> float | None:
        """Return the CPU seconds that a fit will take, in proportion to its rows; None if unknown.

        Parameters
        ----------
        key : the `cost_key` of its study.
        rows : the number of rows that its run uses of the data set.
        choices : the option that the run chose for every group.
        """
        paid = self.exact.get(key) or self.by_components.get(_names(choices))
        if paid is None:
            return None
        return paid.seconds * (rows / paid.rows if paid.rows else 1.0)


def _names(choices: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the data set and the components that a run chose."""
    return tuple(str(choices.get(group, "")) for group in _COMPONENTS)
