"""No row of any table excludes its own point, whatever the data, unless its status says why."""

import numpy as np
import pandas as pd
import pytest

from fairbench import Evaluator, evaluate
from fairbench.evaluation.summary import summarise
from fairbench.evaluation.table import setting_text

ROUNDING = 1e-9


def excluded(table):
    """Return the rows that are ok and leave out their value, or whose ends are swapped."""
    slack = ROUNDING * np.maximum(1, table["value"].abs())
    outside = (table["value"] < table["lower"] - slack) | (table["value"] > table["upper"] + slack)
    swapped = table["lower"] > table["upper"] + slack
    wrong = table[((table["status"] == "ok") & outside) | swapped]
    return wrong.assign(setting=setting_text(wrong))


def features(draw, n):
    """Return one or two attributes whose groups may be of a single row, or of next to all rows."""
    first = np.array([f"a{i}" for i in draw.choice(4, n, p=draw.dirichlet(np.full(4, 0.6)))])
    second = np.array([f"b{i}" for i in draw.integers(0, 2, n)])
    return {"a": first, "b": second} if draw.random() < 0.5 else {"a": first}


@pytest.mark.parametrize("seed", range(24))
def test_of_a_classification(seed):
    draw = np.random.default_rng([1, seed])
    n = int(draw.choice([1, 2, 5, 20, 60, 250]))
    base = draw.choice([0.0, 0.02, 0.2, 0.5, 1.0])
    score = draw.choice([0.0, 0.1, 0.5, 1.0], n) if seed % 3 == 0 else draw.beta(0.5, 1, n)
    design = {"sample_weight": draw.lognormal(0, 1, n), "clusters": draw.permutation(n) // 3}
    design = design if seed % 2 and n > 5 else {}
    table = evaluate(
        (draw.random(n) < base).astype(int),
        (score > draw.choice([0.2, 0.9])).astype(int),
        sensitive_features=features(draw, n),
        score=score,
        uncertainty=np.sqrt(score * (1 - score)),
        aleatoric=score * (1 - score),
        epistemic=np.full(n, 0.01) * draw.integers(0, 2),
        evaluator=Evaluator(draws=100),
        **design,
    )
    assert excluded(table).empty, excluded(table).to_string()


@pytest.mark.parametrize("seed", range(15))
def test_of_a_regression(seed):
    draw = np.random.default_rng([2, seed])
    n = int(draw.choice([1, 2, 5, 20, 60, 250]))
    mean, sd = draw.normal(0, 1, n), draw.choice([0.1, 1.0, 3.0], n)
    error = (draw.normal(size=n), draw.standard_t(2, n), np.zeros(n))[seed % 3]
    table = evaluate(
        mean + sd * error,
        mean,
        sensitive_features=features(draw, n),
        sd=sd,
        uncertainty=sd,
        task="regression",
        evaluator=Evaluator(draws=100),
    )
    assert excluded(table).empty, excluded(table).to_string()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(8))
def test_of_a_whole_run(seed):
    """Ten hold-outs of noise: few rows have no interval in a split, and R2 is negative."""
    draw = np.random.default_rng([3, seed])
    n = int(draw.choice([20, 60, 250]))
    splits = [
        evaluate(
            draw.normal(size=n),
            draw.normal(size=n) * draw.choice([0.1, 1.0]),
            sensitive_features={"a": draw.choice(["x", "y"], n)},
            sd=np.ones(n),
            task="regression",
            evaluator=Evaluator(draws=100),
        ).assign(variant="", repeat=repeat, fold=0)
        for repeat in range(10)
    ]
    summary = summarise(pd.concat(splits, ignore_index=True)).rename(columns={"mean": "value"})
    assert (summary.loc[summary["metric"] == "r2", "value"] < 0).all()
    whatever_the_status = excluded(summary.assign(status="ok"))
    assert whatever_the_status.empty, whatever_the_status.to_string()
