"""A paper's folder: its printed numbers, and which run or computation of ours answers each.

``mapping.yaml`` has the same form for every paper. A table has `rules`; the first that holds for a
published row says what answers it: runs of the table's experiments (`metrics`, `ours`), a
computation of the paper's folder (`computation`), or nothing, and why (`absent`). A rule is for the
`datasets`, `methods`, `metrics` and `settings` it names, and for all where it names none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from fairbench.core.errors import UserError, unknown_name

# What of a published row tells it from the others of its table and metric.
KEYS = ("dataset", "sensitive_attribute", "learner", "method", "n_labelled", "setting")
OURS = "ours"
_CONDITIONS = ("dataset", "method", "metric", "setting")


@dataclass(frozen=True)
class Paper:
    """A paper's numbers and what of ours answers them.

    Attributes
    ----------
    rows : the CSV as text, so that the number of printed digits is known.
    tables : table -> its rules and experiments.
    runs : how many runs are behind a published mean.
    spread : ``printed``, or ``ours`` where the paper prints no sd and its numbers are taken to
        scatter as ours do.
    decimals : metric -> printed decimals, where the CSV has lost trailing zeros; "" for the rest.
    computations : name -> the function, as ``papers.PAPER.MODULE:FUNCTION``, and what it needs.
    figures : figure -> its experiment and what of it is drawn.
    quick : the ``repeats`` and ``datasets`` of a quick look, or ``sweeps: false``.
    """

    name: str
    rows: pd.DataFrame
    tables: Mapping[str, Mapping[str, Any]]
    runs: int = 1
    title: str = ""
    spread: str = "printed"
    decimals: Mapping[str, int] = field(default_factory=dict)
    computations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    figures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, folder: Path) -> Paper:
        """Read ``published.csv`` and ``mapping.yaml`` of ``folder/name``.

        Raises
        ------
        UserError : a paper that has no mapping.
        """
        known = papers_in(folder)
        if name not in known:
            raise unknown_name("paper", name, known)
        mapping = yaml.safe_load((folder / name / "mapping.yaml").read_text(encoding="utf-8"))
        mapping.pop("shared", None)
        rows = pd.read_csv(folder / name / "published.csv", dtype=str, keep_default_na=False)
        return cls(name, rows, **mapping)

    def table(self, table: str) -> Mapping[str, Any]:
        """Return the mapping of a table.

        Raises
        ------
        UserError : a table that the mapping does not have.
        """
        if table not in self.tables:
            raise UserError(
                f"{self.name} has no table '{table}' here: valid: {', '.join(self.tables)}"
            )
        return self.tables[table]

    def published(self, table: str) -> pd.DataFrame:
        """Return the printed numbers of a table, as text."""
        return self.rows[self.rows["table"] == table]

    def experiments(self, table: str) -> list[str]:
        """Return the experiments whose runs answer a table."""
        return list(self.table(table).get("experiments", []))

    def computed(self, table: str) -> list[str]:
        """Return the names of the computations that answer a table."""
        named = [rule.get("computation") for rule in self.table(table)["rules"]]
        return list(dict.fromkeys(filter(None, named)))

    def figure(self, figure: str) -> tuple[str, str]:
        """Return the experiment behind a figure, and what of it is drawn.

        Raises
        ------
        UserError : a figure that the mapping does not have.
        """
        if figure not in self.figures:
            raise UserError(
                f"{self.name} has no figure '{figure}' here: valid: {', '.join(self.figures)}"
            )
        return self.figures[figure]["experiment"], self.figures[figure]["draw"]


def papers_in(folder: Path) -> list[str]:
    """Return the names of the papers whose folder has a mapping."""
    return sorted(path.parent.name for path in folder.glob("*/mapping.yaml"))


def rule_of(rules: Sequence[Mapping[str, Any]], row: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the first rule of the mapping that applies to a published row, or an empty one."""
    return next((rule for rule in rules if _is_for(rule, row)), {})


def _is_for(rule: Mapping[str, Any], row: Mapping[str, str]) -> bool:
    named = ((row[name], rule.get(f"{name}s")) for name in _CONDITIONS)
    return all(values is None or value in values for value, values in named)


def answers(
    rule: Mapping[str, Any], row: Mapping[str, str]
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Yield which runs of ours answer a published row, and by which metric.

    ``{method}`` in a rule's texts is the row's. The first answer reproduces the published number,
    others correct it.
    """
    wanted = rule["metrics"][row["metric"]]
    for choice in rule.get("ours", [{}]):
        chosen = {"method": row["method"], "intervention": "none", **choice}
        yield _filled(chosen, row), {**wanted, **_filled(wanted, row)}


def _filled(texts: Mapping[str, Any], row: Mapping[str, str]) -> dict[str, str]:
    return {name: text.format(**row) for name, text in texts.items() if isinstance(text, str)}


def metrics_of(paper: Paper, *tables: str) -> set[str]:
    """Return the metrics of ours that some tables, or all, need from runs."""
    rules = [rule for table in tables or paper.tables for rule in paper.tables[table]["rules"]]
    wanted = [rule["metrics"] for rule in rules if isinstance(rule.get("metrics"), Mapping)]
    return {str(each["metric"]) for metrics in wanted for each in metrics.values()}
