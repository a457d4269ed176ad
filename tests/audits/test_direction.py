"""What decisions are called, which way a score runs, and how sure that is."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fairbench.audits.direction import _score_area, _sounds_adverse, direction_of, runs_against
from fairbench.core.errors import UserError


@pytest.mark.thorough
def test_the_area_is_that_of_the_curve_and_its_bound_holds_in_simulation():
    draw = np.random.default_rng(0)
    areas = []
    for _ in range(400):
        label = np.repeat([0.0, 1.0], [40, 25])
        score = draw.normal(0.6 * label)
        area, error = _score_area(score, label)
        assert area == pytest.approx(roc_auc_score(label, score))
        areas.append((area, error))
    spread, bound = np.std([area for area, _ in areas]), np.mean([error for _, error in areas])
    assert spread < bound


def test_few_labels_tell_nothing_of_the_direction():
    label = np.repeat([0.0, 1.0, np.nan], [9, 50, 5])
    assert np.isnan(_score_area(-np.arange(64.0), label)).all()
    assert not runs_against(-np.arange(64.0), label)


@pytest.mark.parametrize("favourable", ["paid", "default"])
def test_rates_are_named_by_the_decisions(favourable):
    direction = direction_of(("paid", "default"), favourable, "approved/declined")
    positive = "declined" if favourable == "paid" else "approved"
    assert direction.granted == "approved"
    assert direction.rate_names["statistical_parity"] == f"share {positive}"
    wrongly = direction.rate_names[direction.wrongly_refused]
    assert wrongly == f"share {positive} of those with '{favourable}'"
    name = "false positive rate" if favourable == "paid" else "true positive rate"
    assert f"{wrongly} (also called {name})" in direction.rates_explained


@pytest.mark.parametrize(("favourable", "decided"), [("", "selected"), ("1", "selected"),
                                                      ("0", "predicted '1'")])  # fmt: skip
def test_rates_in_the_fields_terms_are_explained(favourable, decided):
    direction = direction_of(("0", "1"), favourable, "")
    assert direction.rate_names["equal_opportunity"] == "true positive rate"
    explained = direction.rates_explained
    assert f"true positive rate (of those with '1', the share {decided})" in explained
    assert f"false positive rate (of those with '0', the share {decided})" in explained
    assert f"precision (of those {decided}, the share with '1')" in explained
    assert ("selection rate" in explained) == (decided == "selected")


def test_decisions_with_the_labels_names_say_which_label_is_good():
    direction = direction_of(("declined", "approved"), "", "approved/declined")
    assert direction.favourable == 1


@pytest.mark.parametrize("decision", ["approved", "a/b/c", "a/a", "/a"])
def test_two_decisions_are_named(decision):
    with pytest.raises(UserError, match="must name two decisions"):
        direction_of(("0", "1"), "1", decision)


@pytest.mark.parametrize(
    ("name", "adverse"),
    [
        *[("PD", True), ("probDefault", True), ("Ausfallrisiko", True), ("is_fraud", True)],
        *[("score", False), ("repaid", False), ("update", False), ("illness", False)],
    ],
)
def test_names_of_what_is_bad_for_people_are_known(name, adverse):
    assert _sounds_adverse(name) is adverse
