"""Splits that are evaluated together have the rows that each has by itself."""

import numpy as np
import pandas as pd
import pytest

from fairbench.core.arrays import rng
from fairbench.data.dataset import Task
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.table import SETTINGS, concatenate

KEYS = ["metric", "statistic", "attribute", "group", *SETTINGS]
EVERYTHING = Evaluator(
    neighbours=2, relaxations=(0.1, 1.0), feature_shift_rates=(0.2,), draws=100, bins=5
)


def split_of(seed, rows, task=Task.BINARY):
    """Return predictions of some rows, with a group that is small or has no rows at all."""
    draw = np.random.default_rng(seed)
    score = draw.beta(1, 2, rows)
    target = (draw.random(rows) < score).astype(float)
    groups = {
        "sex": pd.Series(pd.Categorical(draw.choice(["f", "m"], rows), ["f", "m"])),
        "race": pd.Series(
            pd.Categorical(draw.choice(list("abc"), rows, p=[0.7, 0.28, 0.02]), list("abc"))
        ),
    }
    columns = {"prediction": score > 0.4, "score": score, "uncertainty": score * (1 - score)}
    truth = pd.DataFrame({"probability": score})
    classes = ()
    if task is Task.REGRESSION:
        target, columns = score + draw.normal(size=rows), {"prediction": score, "sd": 0.5 + score}
        truth = pd.DataFrame({"mean": score, "sd": np.ones(rows)})
    elif task is Task.MULTICLASS:
        shares = draw.dirichlet([1, 2, 3], rows)
        target, classes = draw.integers(0, 3, rows).astype(float), ("x", "y", "z")
        columns = {"prediction": shares.argmax(axis=1), "uncertainty": 1 - shares.max(axis=1)}
        columns |= {f"score_{k}": shares[:, k] for k in range(3)}
        truth = None
    return Labelled(
        target,
        pd.DataFrame({name: np.asarray(values, float) for name, values in columns.items()}),
        groups,
        task,
        truth,
        features=pd.DataFrame({"age": draw.normal(size=rows)}),
        encoded=draw.normal(size=(rows, 2)),
        classes=classes,
    )


def assert_same(one, other):
    assert len(one) == len(other)
    one, other = (
        table.assign(**{name: table[name].astype(object).fillna("") for name in SETTINGS})
        .set_index(["repeat", *KEYS]).sort_index()
        for table in (one, other)
    )  # fmt: skip
    assert not one.index.duplicated().any()
    pd.testing.assert_frame_equal(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.thorough
@pytest.mark.parametrize("task", list(Task))
@pytest.mark.parametrize("interval", ["frequentist", "dirichlet"])
def test_splits_together_have_the_rows_of_each_alone(task, interval):
    evaluator = Evaluator(**{**vars(EVERYTHING), "interval": interval})
    splits = [split_of(seed, rows, task) for seed, rows in ((1, 90), (2, 40), (3, 130))]
    held_out = [split_of(seed, 60, task) for seed in (4, 5, 6)]

    def generators():
        return [rng(0, "posterior", seed) for seed in range(3)]

    together = evaluator.table(
        Labelled.joined(splits),
        generators(),
        validation=Labelled.joined(held_out),
        protect="race",
        splits=(0, 1, 2),
    )
    alone = [
        evaluator.table(split, [generator], validation=validation, protect="race", splits=(s,))
        for s, (split, validation, generator) in enumerate(
            zip(splits, held_out, generators(), strict=True)
        )
    ]
    if task is Task.BINARY:  # what the evaluator has where it is asked for
        asked = {"feature_shift", "postprocessed_gap", "individual_fairness_prediction"}
        assert asked <= set(together.frame()["metric"])
    keys = [(0, s, 0, "") for s in range(3)]
    assert_same(concatenate([together], keys), concatenate(alone, keys))
