"""How each of the two trees is asked, and where it leaves its answers: all they differ in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """One command of a tree.

    Attributes
    ----------
    start : the words after ``python`` and before the case's own. The first is a script of the tree,
        or ``-m``.
    options : pairs of an option's name as the cases spell it, and as this tree spells it.
    """

    start: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()

    def line(self, words: Sequence[str]) -> list[str]:
        """Return the whole command line of a case, after ``python``."""
        return [*self.start, *map(self._spelled, words)]

    def _spelled(self, word: str) -> str:
        name, equals, value = word.partition("=")
        return f"{dict(self.options).get(name, name)}{equals}{value}"


@dataclass(frozen=True)
class Dialect:
    """All commands of a tree, and its files.

    Attributes
    ----------
    commands : what the cases call a task -> how this tree is asked for it.
    metrics, comparison, tradeoff : where in a results folder a run's metrics and both tables are.
    record : where in the folder of an audit its JSON is.
    arguments : pairs of an argument of ``fairbench.evaluate`` as the cases name it, and as this
        tree does.
    evaluator : options of every evaluation, which this tree has to be told.
    """

    commands: Mapping[str, Command]
    metrics: str = "runs/*/metrics.parquet"
    comparison: str = "report/comparison/*.csv"
    tradeoff: str = "report/tradeoff/*.csv"
    record: str = "*.json"
    arguments: tuple[tuple[str, str], ...] = ()
    evaluator: tuple[tuple[str, str], ...] = ()

    @property
    def of_runs(self) -> tuple[str, ...]:
        """The same options as the words of a run."""
        return tuple(f"evaluator.{name}={value}" for name, value in self.evaluator)


def _verb(*words: str, options: tuple[tuple[str, str], ...] = ()) -> Command:
    return Command(("-m", "fairbench", *words), options)


_COMMANDS = {
    "run": _verb("run"),
    "compare": _verb("compare", "detail=all", options=(("compare", "runs"),)),
    "tradeoff": _verb("tradeoff"),
    "audit": _verb("audit"),
    "next": _verb("label", "next"),
    "label": _verb("label", "ask"),
    "report": _verb("label", "report"),
}
# Where a later tree is asked otherwise, the two differ.
FROZEN = CURRENT = Dialect(_COMMANDS)
