"""All populations of the battery of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from benchmarks.statements import classes, numbers, proxy, ranking, survival, two_classes
from benchmarks.statements.simulate import Population

_FAMILIES: Mapping[str, Callable[[], Iterator[Population]]] = {
    "two classes": two_classes.populations,
    "classes": classes.populations,
    "numbers": numbers.populations,
    "ranking": ranking.populations,
    "proxy": proxy.populations,
    "survival": survival.populations,
}
KINDS = ("binary", "selected", "pair", "many", "classes", "numbers", "ranking", "proxy", "survival")


def populations(kind: str = "") -> Iterator[Population]:
    """Yield the populations of a kind of audit, or of all."""
    for family in _FAMILIES.values():
        for population in family():
            if kind in ("", population.kind):
                yield population
