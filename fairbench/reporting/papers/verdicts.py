"""Whether a number of ours agrees with a published one: the difference, and two verdicts on it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fairbench.reporting.papers.mapping import OURS, Paper

VERDICTS = AGREES, WITHIN, DIFFERS, MISSING, ABSENT = (
    "agrees",
    "within sd",
    "differs",
    "not run",
    "no answer",
)


def judge(
    paper: Paper, row: Mapping[str, str], ours: Mapping[str, float] | None, runs: int | None = None
) -> dict[str, float | str]:
    """Compare one published number with ours.

    ``agrees``: the means differ by at most 2 sqrt(sd1^2 / R1 + sd2^2 / R2) plus half a unit of the
    last published digit. ``within sd``, looser: by at most the paper's own sd.

    Parameters
    ----------
    row : `metric`, `value` and `sd` as printed.
    ours : `mean`, `sd`, `repeats`, and `error`, the standard error of the difference, where it is
        not that of two means.
    runs : how many runs are behind the published mean, where not as in the paper's other tables.
    """
    published, printed = float(row["value"]), float(row["sd"]) if row["sd"] else 0.0
    columns: dict[str, float | str] = {"published": published, "published sd": printed}
    if ours is None or np.isnan(ours["mean"]):
        nothing = dict.fromkeys(("ours", "our sd", "repeats", "difference"), np.nan)
        return {**columns, **nothing, "verdict": MISSING}
    own_sd = 0.0 if np.isnan(ours["sd"]) else ours["sd"]
    spread = own_sd if paper.spread == OURS else printed
    error = ours.get("error", np.nan)
    if np.isnan(error):
        error = np.sqrt(own_sd**2 / ours["repeats"] + spread**2 / (runs or paper.runs))
    difference = ours["mean"] - published
    if abs(difference) <= 2 * error + _half_unit_of(paper, row):
        verdict = AGREES
    else:
        verdict = WITHIN if abs(difference) <= printed else DIFFERS
    return {
        **columns,
        "ours": ours["mean"],
        "our sd": own_sd,
        "repeats": ours["repeats"],
        "difference": difference,
        "verdict": verdict,
    }


def _half_unit_of(paper: Paper, row: Mapping[str, str]) -> float:
    decimals = paper.decimals.get(row["metric"], paper.decimals.get(""))
    return half_unit(row["value"]) if decimals is None else float(0.5 * 10**-decimals)


def half_unit(printed: str) -> float:
    """Return half a unit of the last digit of a number as printed.

    A number of ten or more that ends in ``.0`` was printed without decimals, and its trailing
    zeros are no digits: ``120.0`` stands for 120, printed to tens.
    """
    whole, _, decimals = printed.lstrip("-").partition(".")
    if decimals == "0" and len(whole) > 1:
        return float(0.5 * 10 ** (len(whole) - len(whole.rstrip("0"))))
    return float(0.5 * 10 ** -len(decimals))


def counts(rows: pd.DataFrame) -> dict[str, int]:
    """Return how many reproductions have each verdict."""
    found = rows.loc[rows["reproduces"], "verdict"].value_counts()
    return {name: int(found.get(name, 0)) for name in VERDICTS}


def scoreboard(rows: pd.DataFrame) -> str:
    """Return how many reproductions agree, lie within the paper's sd, differ, or were not run."""
    found = counts(rows)
    if not found[ABSENT]:
        del found[ABSENT]
    parts = [f"{count} {name}" for name, count in found.items()]
    return f"{', '.join(parts)} of {int(rows['reproduces'].sum())} numbers"


def quick_note(rows: pd.DataFrame, runs: int) -> str:
    """Return a note where our means have fewer repeats than `runs`; else nothing."""
    most = float(rows["repeats"].max())
    return f"quick: {most:.0f} repeat{'s' * (most > 1)}" if most < runs else ""
