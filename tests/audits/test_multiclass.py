"""Audits of three classes and more: what is computed, what is told apart, what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from tests.audits.tables import written

CLASSES = np.array(["cat", "dog", "emu"])
# P(right) of each predicted class, and the score that claims it.
RIGHT, SCORE = np.array([0.5, 0.9, 0.92]), np.array([0.55, 0.9, 0.6])
TOP = ("target=label", "prediction=predicted", "score=score")


def classified(rows=3000, *, labels=None, seed=0):
    """Return predictions of three classes; <cat> is least accurate, <emu> least calibrated."""
    generator = np.random.default_rng(seed)
    predicted = generator.integers(3, size=rows)
    wrong = (predicted + generator.integers(1, 3, size=rows)) % 3
    right = generator.random(rows) < RIGHT[predicted]
    label = CLASSES[np.where(right, predicted, wrong)].astype(object)
    label[generator.permutation(rows)[rows if labels is None else labels :]] = ""
    site = generator.choice(["north", "south"], rows)
    return pd.DataFrame(
        {"predicted": CLASSES[predicted], "score": SCORE[predicted], "label": label, "site": site}
    )


def audited(frame, folder, *words):
    path = written(frame, folder)
    run_command(["audit", str(path), *words, f"out={folder}"])
    return json.loads((folder / "audit.json").read_text())


def test_classes_are_counted_ranked_and_concluded_upon(tmp_path, capsys):
    frame = classified()
    result = audited(frame, tmp_path, *TOP, "group=[site]")
    classes = {part["name"]: part for part in result["classes"]}
    for name in CLASSES:
        rows = frame[frame["predicted"] == name]
        right = (rows["label"] == name).sum()
        assert classes[name]["rows"] == len(rows)
        assert classes[name]["accuracy"]["value"] == pytest.approx(right / len(rows))
    assert classes["cat"]["accuracy"]["worst_rank"] == classes["cat"]["accuracy"]["best_rank"] == 1
    assert classes["emu"]["calibration"]["extreme"] > 0.99
    assert classes["emu"]["calibration"]["value"] == pytest.approx(0.32, abs=0.04)
    assert [part["name"] for part in result["groups"]["site"]] in (
        ["north", "south"],
        ["south", "north"],
    )
    printed = capsys.readouterr().out
    assert "The predicted class of the lowest accuracy is cat" in printed
    assert max(map(len, printed.split("written")[0].splitlines())) <= 100
    page = (tmp_path / "audit.html").read_text()
    assert "of the lowest accuracy is cat" in page
    assert "://" not in page.replace("http://www.w3.org", "")


def test_probabilities_of_all_classes_are_read_by_their_columns_names(tmp_path):
    frame = classified()
    code = pd.Categorical(frame["predicted"], categories=list(CLASSES)).codes
    shares = np.repeat(((1 - frame["score"]) / 2).to_numpy()[:, None], 3, axis=1)
    shares[np.arange(len(frame)), code] = frame["score"]
    named = frame.assign(**{f"p_{name}": shares[:, k] for k, name in enumerate(CLASSES)})
    words = ("target=label", "score=[p_cat,p_dog,p_emu]")
    by_class, by_confidence = audited(named, tmp_path, *words), audited(frame, tmp_path, *TOP)
    assert by_class["classes"] == by_confidence["classes"]
    assert by_class["mistakes"] == by_confidence["mistakes"]


def test_costs_follow_the_matrix_whatever_its_order(tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("true,emu,cat,dog\ndog,1,1,0\ncat,5,0,50\nemu,0,1,50\n")
    result = audited(classified(), tmp_path, *TOP, f"cost={costs}")
    cost = {part["name"]: part["cost"] for part in result["classes"]}
    assert cost["cat"]["value"] == pytest.approx(1 - RIGHT[0], abs=0.06)
    assert cost["dog"]["value"] == pytest.approx(50 * (1 - RIGHT[1]), abs=2)
    assert cost["emu"]["value"] == pytest.approx(3 * (1 - RIGHT[2]), abs=0.1)
    assert cost["dog"]["extreme"] > 0.99


FAULTS = {
    "third label": (lambda f: f.replace({"predicted": {"emu": "dog"}}), TOP, "a label has two val"),
    "score": (lambda f: f.assign(score=1.5), TOP, "column 'score', row 1: '1.5' is not a prob"),
    "no score": (lambda f: f, TOP[:2], "score= is missing"),
    "no label": (lambda f: f, ("score=[score,score]",), "target= is missing"),
    "sum": (lambda f: f, ("target=label", "score=[score,site]"), "column 'site', row 1: .* number"),
    "no cost": (lambda f: f, (*TOP, "cost=none.csv"), "cost=none.csv cannot be read"),
    "prior": (lambda f: f, (*TOP, "prior=flat"), "unknown prior 'flat'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault, tmp_path):
    change, words, message = FAULTS[fault]
    with pytest.raises(UserError, match=message):
        audited(change(classified(60)), tmp_path, *words, *(["group=site"] if "third" in fault
                                                            else []))  # fmt: skip


def test_a_cost_matrix_without_a_class_is_refused(tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("true,cat,dog\ncat,0,1\ndog,1,0\n")
    with pytest.raises(UserError, match="0 columns of class 'emu', not 1"):
        audited(classified(60), tmp_path, *TOP, f"cost={costs}")
