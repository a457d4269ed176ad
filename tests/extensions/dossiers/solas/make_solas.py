"""Write the answers of answers.json anew: what the package solas-ai says of its tables of loans.

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

QUANTILES = (0.1, 0.25, 0.5, 0.8)
GROUPS = ("White", "Black", "Asian")


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
    """Answer the tables of the file beside this script."""
    warnings.filterwarnings("ignore")
    place = Path(__file__).with_name("answers.json")
    about = json.loads(place.read_text(encoding="utf-8"))
    for table in about["tables"]:
        table["answers"] = answers(pd.DataFrame(table["rows"]))
    about["version"] = version("solas-ai")
    place.write_text(json.dumps(about, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
