"""Write answers.json: random tables of loans, and what the package solas-ai says of them.

It takes an environment with solas-ai (0.6.0 wrote the file): ``python make_solas.py``. Tests need
the file alone.
"""

from __future__ import annotations

import json
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

SEED, TABLES = 36, 6
QUANTILES = (0.1, 0.25, 0.5, 0.8)
GROUPS = ("White", "Black", "Asian")


def table(number: int) -> pd.DataFrame:
    """Return one table: more rows, other shares and coarser scores from one to the next."""
    draw = np.random.default_rng([SEED, number])
    n = (90, 120, 160, 200, 240, 300)[number]
    race = draw.choice(GROUPS, n, p=[(0.6, 0.25, 0.15), (0.8, 0.15, 0.05)][number % 2])
    income = draw.gamma(2.0, 1 + 0.5 * (race == "White"), n).round(2)
    product = draw.choice(["card", "auto", "home"], n, p=[0.5, 0.3, 0.2])
    noise = draw.normal(0, 1, n) + 0.5 * (race == "White") - 0.3 * (product == "card")
    score = (0.6 * income + noise).round(1 if number < 4 else 4)
    granted = (score > (1.0, 0.2, 2.5)[number % 3]).astype(int)
    apr = (9 - 0.5 * score + np.exp(draw.normal(0, 0.6, n))).round(3)
    return pd.DataFrame(
        {"race": race, "income": income, "product": product, "score": score, "granted": granted,
         "apr": apr}
    )  # fmt: skip


def fitted(frame: pd.DataFrame, outcome: str) -> pd.Series:
    """Return the least-squares regression of an outcome on income and product."""
    dummies = pd.get_dummies(frame["product"], drop_first=True, dtype=float)
    design = np.column_stack([np.ones(len(frame)), frame["income"], dummies])
    return pd.Series(design @ np.linalg.lstsq(design, frame[outcome], rcond=None)[0])


def answers(frame: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return what solas-ai says, as ``measure -> group, or group | part -> value``."""
    import solas_disparity as solas

    whom = {
        "group_data": pd.DataFrame({g: (frame["race"] == g).astype(float) for g in GROUPS}),
        "protected_groups": list(GROUPS[1:]),
        "reference_groups": [GROUPS[0]] * 2,
        "group_categories": ["race"] * 2,
    }
    air = {"air_threshold": 0.8, "percent_difference_threshold": 0.0}
    granted, score, apr = (frame[name] for name in ("granted", "score", "apr"))
    made = {
        "air": (solas.adverse_impact_ratio(outcome=granted, **air, **whom), "AIR"),
        "odds_ratio": (
            solas.odds_ratio(outcome=granted, odds_ratio_threshold=0.8,
                             percent_difference_threshold=0.0, **whom),
            "Odds Ratio",
        ),
        "smd_score": (
            solas.standardized_mean_difference(outcome=score, smd_threshold=30.0, **whom), "SMD"
        ),
        "smd_apr": (
            solas.standardized_mean_difference(outcome=apr, smd_threshold=30.0, **whom), "SMD"
        ),
        "residual_smd_apr": (
            solas.residual_standardized_mean_difference(
                prediction=fitted(frame, "apr"), label=apr, residual_smd_threshold=30.0, **whom
            ),
            "Residual SMD",
        ),
        "air_of_best_high": (
            solas.adverse_impact_ratio_by_quantile(
                outcome=score, quantiles=list(QUANTILES), lower_score_favorable=False,
                merge_bins=False, **air, **whom
            ),
            "AIR",
        ),
        "air_of_best_low": (
            solas.adverse_impact_ratio_by_quantile(
                outcome=score, quantiles=list(QUANTILES), lower_score_favorable=True,
                merge_bins=False, **air, **whom
            ),
            "AIR",
        ),
        "air_by_segment": (
            solas.segmented_adverse_impact_ratio(
                outcome=granted, fdr_threshold=0.2, segment=frame["product"], **air, **whom
            ),
            "AIR",
        ),
    }  # fmt: skip
    result: dict[str, dict[str, float]] = {}
    for measure, (disparity, column) in made.items():
        values = disparity.summary_table[column].dropna()
        result[measure] = {
            "|".join(map(str, key)) if isinstance(key, tuple) else str(key): float(value)
            for key, value in values.items()
        }
    return result


def main() -> None:
    """Write the file beside this script."""
    warnings.filterwarnings("ignore")
    frames = [table(number) for number in range(TABLES)]
    tables = [{"rows": frame.to_dict("list"), "answers": answers(frame)} for frame in frames]
    place = Path(__file__).with_name("answers.json")
    about = {"package": "solas-ai", "version": version("solas-ai"), "seed": SEED, "tables": tables}
    place.write_text(json.dumps(about, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
