"""Names of metrics in MLflow: only such as it takes, one for each metric."""

import posixpath
import re

import pandas as pd
import pytest

from fairbench import Evaluator, evaluate
from fairbench.tracking.run_entry import metric_values

# mlflow.utils.validation: on Windows, too, a name has these characters and is a normal path.
ALLOWED, LONGEST = re.compile(r"[/\w.\- ]*"), 250
LABELS = [
    ">=25", "<25", "age < 25", "a+b", "Other / unknown", "/", ".", "..", "../x", "x/", "/x",
    "Español", "a\nb", "<=$50K", "50%", "a:b", "Male|Female", "x" * 300, "",
]  # fmt: skip


def allowed(name):
    path = posixpath.normpath(name)
    unique = path == name and name != "." and not path.startswith(("..", "/"))
    return bool(ALLOWED.fullmatch(name)) and unique and len(name) <= LONGEST


def metrics_of(labels, attribute="age"):
    labels = list(labels) * 8
    target = [(i // 2) % 2 for i in range(len(labels))]
    score = [(i * 7 % 10) / 10 for i in range(len(labels))]
    table = evaluate(
        target, [int(s > 0.5) for s in score], score=score, uncertainty=score,
        sensitive_features={attribute: labels}, evaluator=Evaluator(draws=100),
    )  # fmt: skip
    return table.assign(repeat=0, fold=0, variant="")


@pytest.mark.parametrize("label", LABELS, ids=ascii)
def test_any_label_gives_names_that_mlflow_takes(label):
    names = [name for name, _ in metric_values(metrics_of([label, "b"]), "age")]
    assert len(names) > 50
    assert [name for name in names if not allowed(name)] == []


@pytest.mark.parametrize("attribute", [".", "sex/race", "<x>", "sex x age", "y" * 240])
def test_any_attribute_gives_names_that_mlflow_takes(attribute):
    names = [name for name, _ in metric_values(metrics_of("ab", attribute), attribute)]
    assert [name for name in names if not allowed(name)] == []


def test_names_are_one_for_each_metric():
    metrics = metrics_of([">=25", "<25", ">25", "<=25", "x" * 300 + "1", "x" * 300 + "2"])
    names = [name for name, _ in metric_values(metrics, "age")]
    assert len(set(names)) == len(names)
    assert {"age/under25/error_rate", "age/at least25/error_rate"} <= set(names)


def test_values_are_means_over_the_repeats_that_have_one():
    table = metrics_of("ab")
    tables = []
    for repeat, value in enumerate((0.2, 0.4, float("nan"))):
        mine = table.assign(repeat=repeat)
        mine.loc[mine["metric"] == "roc_auc", "value"] = value
        mine.loc[mine["metric"] == "log_loss", "value"] = float("nan")
        tables.append(mine)
    found = dict(metric_values(pd.concat(tables, ignore_index=True), "age"))
    assert found["roc_auc"] == pytest.approx(0.3)
    assert not [name for name in found if name.endswith("log_loss")]
    assert not [name for name in found if name.startswith(("reliability", "spread_predicted"))]


def test_variants_and_other_attributes_are_left_to_the_files():
    own = metrics_of("ab")
    varied = own.assign(variant="max_depth=5", value=own["value"] / 2)
    other = metrics_of("cd", "sex")
    of_sex = other[other["attribute"] == "sex"]
    found = dict(metric_values(pd.concat([varied, own, of_sex], ignore_index=True), "age"))
    assert found == dict(metric_values(own, "age"))
    assert {"accuracy", "age/statistical_parity"} <= set(found)
    assert not [name for name in found if "sex" in name or "max_depth" in name or "rate-" in name]
