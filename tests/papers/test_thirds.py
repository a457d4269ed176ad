"""Other thirds held out: whose labels, of which rows, and how far a number is from their mean."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.papers.few_labels import thirds
from fairbench.inference.few_labels.table import PartlyLabelled

ROW = {
    "table": "4.2",
    "dataset": "adult",
    "sensitive_attribute": "group",
    "learner": "gaussian_nb",
    "setting": "",
    "n_labelled": "10",
    "metric": "mae_delta_accuracy",
    "value": "7.0",
}


@pytest.fixture
def embedded(monkeypatch):
    """Simulated people in place of Adult's and German's."""
    monkeypatch.setattr(thirds, "DATASETS", dict.fromkeys(("adult", "german"), "dataset=sd1"))
    people = np.arange(40)
    file = PartlyLabelled.of(people / 40, people % 2, people % 2)
    monkeypatch.setattr(thirds, "released", lambda *key: file)
    thirds.fitted.cache_clear()
    yield
    thirds.fitted.cache_clear()


def test_a_table_has_as_many_held_out_people_as_the_released_file(embedded, tmp_path):
    (group,) = thirds.fitted("adult", "gaussian_nb", 3, tmp_path).dataset.sensitive
    tables = thirds.other_thirds("adult", group, "gaussian_nb", thirds=3, results=tmp_path)
    assert [len(table.score) for table in tables] == [40, 40, 40]
    assert not np.array_equal(tables[0].score, tables[1].score)
    # The model knows something of people it has not seen.
    assert all((table.prediction == table.label).mean() > 0.6 for table in tables)


def test_the_scores_of_german_are_of_the_other_class(embedded, tmp_path):
    (group,) = thirds.fitted("german", "gaussian_nb", 2, tmp_path).dataset.sensitive
    as_is, turned = (
        thirds.other_thirds(name, group, "gaussian_nb", thirds=2, results=tmp_path)
        for name in ("adult", "german")
    )
    for one, other in zip(as_is, turned, strict=True):
        np.testing.assert_array_equal(one.score, other.score)
        np.testing.assert_array_equal(one.label, 1 - other.label)


@pytest.mark.parametrize(("theirs", "near"), [("4.3", True), ("4.4", False)])
def test_near_is_two_sds_of_one_more_third(monkeypatch, theirs, near):
    monkeypatch.setattr(thirds, "released", lambda *key: 10.0)
    monkeypatch.setattr(thirds, "other_thirds", lambda *key, **options: [1.0, 2.0, 3.0])
    monkeypatch.setattr(thirds, "number", lambda table, row, runs: (table, 0.1))
    (result,) = thirds.compare(
        pd.DataFrame([{**ROW, "value": theirs}]), thirds.Options(thirds=3, runs=5)
    )
    assert (result["released"], result["thirds"], result["sd"]) == (10.0, 2.0, 1.0)
    assert result["published is near"] is near
    board = thirds.scoreboard(pd.DataFrame([result]))
    assert board.loc[("4.2", "adult")].tolist() == [1, int(near), 0]


def test_a_coverage_that_never_varies_has_the_error_of_its_runs(monkeypatch):
    monkeypatch.setattr(thirds, "released", lambda *key: 100.0)
    monkeypatch.setattr(thirds, "other_thirds", lambda *key, **options: [100.0, 100.0])
    monkeypatch.setattr(thirds, "number", lambda table, row, runs: (table, 1.5))
    (result,) = thirds.compare(
        pd.DataFrame([{**ROW, "value": "99.0"}]), thirds.Options(thirds=2, runs=5)
    )
    assert result["sd"] == 1.5
    assert result["published is near"]
