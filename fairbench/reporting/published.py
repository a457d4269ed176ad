"""Our numbers beside the papers': the difference, and two verdicts on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from fairbench.core.errors import UserError, unknown_name

VERDICTS = AGREES, WITHIN, DIFFERS, MISSING = "agrees", "within sd", "differs", "not run"


@dataclass(frozen=True)
class Paper:
    """A paper's numbers and the mapping of its rows to our metrics.

    Attributes
    ----------
    rows : the CSV as text, so that the number of printed digits is known.
    tables : table -> its experiments, and the rules by which its rows are found among our
        metrics, from ``mapping.yaml``.
    figures : figure -> its experiment and what of it is drawn, likewise.
    runs : how many runs are behind a published mean.
    quick : the ``repeats`` and ``datasets`` of a quick look, if the YAML says.
    """

    name: str
    rows: pd.DataFrame
    tables: Mapping[str, Mapping[str, Any]]
    runs: int
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
        rows = pd.read_csv(folder / name / "published.csv", dtype=str, keep_default_na=False)
        extra = {key: mapping.get(key, {}) for key in ("figures", "quick")}
        return cls(name, rows, mapping["tables"], int(mapping["runs"]), **extra)

    def experiments(self, table: str) -> list[str]:
        """Return the experiments that compute a table.

        Raises
        ------
        UserError : a table that the mapping does not have.
        """
        if table not in self.tables:
            raise UserError(
                f"{self.name} has no table '{table}' here: valid: {', '.join(self.tables)}"
            )
        return list(self.tables[table]["experiments"])

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


def compare(paper: Paper, table: str, ours: pd.DataFrame) -> pd.DataFrame:
    """Return a row per published number and method of ours that answers it.

    Parameters
    ----------
    ours : summaries of finished runs with the columns ``experiment``, ``dataset``, ``method``,
        ``intervention`` and ``option`` in front.
    """
    mapping = paper.tables[table]
    rows = paper.rows[paper.rows["table"] == table]
    return pd.DataFrame(list(_compared(paper, mapping, rows, ours)))


def _compared(
    paper: Paper, mapping: Mapping[str, Any], rows: pd.DataFrame, ours: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    datasets = mapping.get("datasets", {})
    for row in rows.to_dict("records"):
        dataset = datasets.get(row["dataset"], row["dataset"])
        for i, (choice, wanted) in enumerate(_answers(mapping["rules"], row)):
            label = choice.pop("label", "") or _label(choice)
            found = _found(ours, {"dataset": dataset, **choice}, wanted)
            yield {
                "dataset": row["dataset"],
                "metric": row["metric"],
                "published method": " ".join(filter(None, [row["method"], row["setting"]])),
                "our method": label,
                "reproduces": i == 0,
                **judge(row["value"], row["sd"], paper.runs, found),
            }


def _answers(
    rules: Sequence[Mapping[str, Any]], row: Mapping[str, str]
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Yield which runs of ours answer a published row, and by which metric.

    The first rule that names the row's method and setting, or none, holds; ``{method}`` in its
    texts is the row's. The first answer reproduces the published number, others correct it.
    """
    rule = next((rule for rule in rules if _holds(rule, row)), None)
    wanted = rule["metrics"].get(row["metric"]) if rule else None
    if rule is None or wanted is None:
        return
    for choice in rule.get("ours", [{}]):
        chosen = {"method": row["method"], "intervention": "none", **choice}
        yield _filled(chosen, row), {**wanted, **_filled(wanted, row)}


def _holds(rule: Mapping[str, Any], row: Mapping[str, str]) -> bool:
    return row["method"] in rule.get("methods", [row["method"]]) and row["setting"] in rule.get(
        "settings", [row["setting"]]
    )


def _filled(texts: Mapping[str, Any], row: Mapping[str, str]) -> dict[str, str]:
    return {name: text.format(**row) for name, text in texts.items() if isinstance(text, str)}


def _label(choice: Mapping[str, str]) -> str:
    """Name our answer: its method unless an intervention says it all, and a run that differs."""
    intervention = "" if choice["intervention"] == "none" else choice["intervention"]
    method = "" if intervention and choice["method"] == "baseline" else choice["method"]
    held_out = "validation" if choice.get("experiment", "").endswith("_validation") else ""
    return " ".join(filter(None, [method, intervention, choice.get("option", ""), held_out]))


def _found(
    ours: pd.DataFrame, choice: Mapping[str, str], wanted: Mapping[str, Any]
) -> Mapping[str, float] | None:
    """Return mean and sd of the one row, in the paper's unit: ``shift`` plus ``scale`` times it."""
    keys = {
        **choice,
        "metric": wanted["metric"],
        "variant": "",
        "attribute": wanted.get("attribute", ""),
        "group": "",
    }
    rows = ours[np.logical_and.reduce([ours[name] == value for name, value in keys.items()])]
    if rows.empty:
        return None
    first, scale = rows.iloc[0], wanted.get("scale", 1.0)
    mean = wanted.get("shift", 0.0) + scale * first["mean"]
    return {"mean": mean, "sd": abs(scale) * first["sd"], "repeats": first["repeats"]}


def judge(
    value: str, sd: str, runs: int, ours: Mapping[str, float] | None
) -> dict[str, float | str]:
    """Compare one published number with ours.

    ``agrees``: the means differ by at most 2 sqrt(sd1^2 / R1 + sd2^2 / R2) plus half a unit of the
    last published digit. ``within sd``, looser: by at most the paper's own sd. Parameters `value`
    and `sd` are as printed.
    """
    published, spread = float(value), float(sd) if sd else 0.0
    row: dict[str, float | str] = {"published": published, "published sd": spread}
    if ours is None or np.isnan(ours["mean"]):
        nothing = dict.fromkeys(("ours", "our sd", "repeats", "difference"), np.nan)
        return {**row, **nothing, "verdict": MISSING}
    own_sd = 0.0 if np.isnan(ours["sd"]) else ours["sd"]
    difference = ours["mean"] - published
    error = np.sqrt(own_sd**2 / ours["repeats"] + spread**2 / runs)
    if abs(difference) <= 2 * error + half_unit(value):
        verdict = AGREES
    else:
        verdict = WITHIN if abs(difference) <= spread else DIFFERS
    return {
        **row,
        "ours": ours["mean"],
        "our sd": own_sd,
        "repeats": ours["repeats"],
        "difference": difference,
        "verdict": verdict,
    }


def half_unit(printed: str) -> float:
    """Return half a unit of the last digit of a number as printed.

    A number of ten or more that ends in ``.0`` was printed without decimals, and its trailing
    zeros are no digits: ``120.0`` stands for 120, printed to tens.
    """
    whole, _, decimals = printed.lstrip("-").partition(".")
    if decimals == "0" and len(whole) > 1:
        return float(0.5 * 10 ** (len(whole) - len(whole.rstrip("0"))))
    return float(0.5 * 10 ** -len(decimals))


def scoreboard(rows: pd.DataFrame) -> str:
    """Return how many reproductions agree, lie within the paper's sd, differ, or were not run."""
    rows = rows[rows["reproduces"]]
    counts = rows["verdict"].value_counts()
    parts = [f"{counts.get(name, 0)} {name}" for name in (AGREES, WITHIN, DIFFERS, MISSING)]
    return f"{', '.join(parts)} of {len(rows)} numbers"


def quick_note(rows: pd.DataFrame, runs: int) -> str:
    """Say of how few repeats our means are, if of fewer than the paper's `runs`; else nothing."""
    most = float(rows["repeats"].max())
    return f"quick: {most:.0f} repeat{'s' * (most > 1)}" if most < runs else ""
