"""A table of approaches with known truth, as `approach_table` would make it."""

import numpy as np
import pandas as pd

_GAPS = ("statistical_parity", "equalized_odds")
LEARNERS = ("logistic_regression", "xgboost")


def table(*, families=(1,) * 8 + (2,), learners=LEARNERS, repeats=6, worse=0.0, noise=0.01):
    """Return a table of learners with an intervention, a bag and thresholds.

    The gap without is 0.2 and falls with the strength; `worse` is by how much the intervention's
    error lies above that of thresholds with its gap, whose error rises by a tenth of the fall.
    """
    draw = np.random.default_rng(0)
    rows = []
    family = np.repeat(np.arange(len(families)), families)
    for task, of in enumerate(family):
        base = draw.uniform(0.15, 0.3)
        size = int(10 ** draw.uniform(2.7, 4.5))
        about = {"family": f"family {of}", "dataset": f"data {task:02}", "protect": "sex"}
        about |= {"rows": float(size), "features": 10.0, "positive_share": base, "groups": 2.0}
        about |= {"smallest_group_share": draw.uniform(0.1, 0.5), "test_share": 0.2, "seed": 0}
        for place, learner in enumerate(learners):
            own = base + 0.03 * place + 0.01 * draw.standard_normal()
            for approach in _approaches(worse):
                tilt = 0.003 * draw.standard_normal() if approach["intervention"] != "none" else 0
                for repeat in range(repeats):
                    common = np.random.default_rng([0, task, repeat]).standard_normal(2)
                    error, gap = own + tilt + approach["error"], approach["gap"]
                    values = {
                        "error_rate": error + noise * (common[0] + 0.3 * draw.standard_normal()),
                        "log_loss": 2 * error + noise * common[0] + 0.003 * draw.standard_normal(),
                        **_gaps(approach, abs(gap + noise * common[1]), draw, noise),
                        "multicalibration_error": 0.05, "expected_calibration_error": 0.05,
                        "fit_seconds": 0.1 * (place + 1), "predict_seconds": 0.01,
                    }  # fmt: skip
                    names = ("learner", "intervention", "method", "options", "setting")
                    texts = {name: approach.get(name, learner) for name in names}
                    values |= {"repeat": repeat, "run": f"{task}{learner}{texts}"}
                    values["group_at_prediction"] = bool(texts["setting"])
                    rows.append({**about, **texts, **values})
    return pd.DataFrame(rows)


def _gaps(approach, gap, draw, noise):
    result = {name: gap + 0.3 * noise * draw.standard_normal() for name in _GAPS}
    only = approach["setting"].partition("<=")[0]
    return {name: value for name, value in result.items() if only in ("", name)}


def _approaches(worse):
    plain = {"intervention": "none", "method": "baseline", "options": "", "setting": ""}
    yield {**plain, "error": 0.0, "gap": 0.2}
    yield {**plain, "method": "binomial_nll", "error": 0.0, "gap": 0.2}
    yield {**plain, "method": "ensemble", "error": -0.002, "gap": 0.2}
    for strength in (0.25, 0.5, 0.75, 1.0):
        options = {"intervention": "reweighing", "options": f"intervention.strength={strength}"}
        fallen = 0.15 * strength
        yield {**plain, **options, "error": 0.1 * fallen + worse, "gap": 0.2 - fallen}
    for name in _GAPS:
        for limit in (0, 0.05, 0.1, 0.2, 1):
            fallen = max(0.2 - limit, 0.0)
            setting = {"setting": f"{name}<={limit:g}"}
            yield {**plain, **setting, "error": 0.1 * fallen, "gap": 0.2 - fallen}


FEW = "logistic_regression, reductions, baseline"


def with_few(table, tasks=("data 00", "data 01", "data 02", "data 03")):
    """Return a table with an approach that is far better than all, here and there, on few tasks."""
    kept = (table["learner"] == "logistic_regression") & table["options"].str.endswith("=1.0")
    rows = table[kept & table["dataset"].isin(tasks)]
    wide = 0.2 * np.random.default_rng(1).standard_normal(len(rows))
    result = rows.assign(
        intervention="reductions",
        options="",
        error_rate=rows["error_rate"] - 0.1 + 0.1 * wide,
        statistical_parity=abs(wide),
        run="r" + rows["run"],
    )
    return pd.concat([table, result], ignore_index=True)
