"""What fits will cost, by what they have cost, and the list that a plan prints."""

import pytest

from fairbench.cli import summary
from fairbench.experiments.execute import Plan, carry_out
from fairbench.experiments.prices import Prices
from fairbench.results.catalogue import Catalogue
from tests.harness import TINY, configuration


@pytest.fixture
def paid(tmp_path):
    """Return the plan of a run that was carried out, and what its cells have cost each."""
    config = configuration(*TINY, "dataset.n_samples=200", results=tmp_path)
    end = carry_out(config)
    return end.plan, end.prepared.folder.environment["cost"]["seconds_per_cell"]


def test_the_same_components_cost_the_same_and_more_rows_more(paid, tmp_path):
    planned, seconds = paid
    prices, chosen = Prices.of(Catalogue(tmp_path)), planned.config["hydra"]["runtime"]["choices"]
    assert planned.rows == 200
    assert prices.seconds(planned.cost_key, 200, chosen) == pytest.approx(seconds)
    assert prices.seconds(planned.cost_key, 600, {}) == pytest.approx(3 * seconds)
    assert prices.seconds("of other options", 200, chosen) == pytest.approx(seconds)
    assert prices.seconds("", 200, {**chosen, "learner": "another"}) is None


def test_a_plan_of_many_runs_is_a_price_list_and_names_a_pilot(paid, tmp_path, monkeypatch, capsys):
    planned, seconds = paid
    config = dict(planned.config)
    chosen = config["hydra"]["runtime"]["choices"]
    other = {**config, "hydra": {"runtime": {"choices": {**chosen, "learner": "another"}}}}
    runs = [
        Plan(cells, f"{name}{k}", "", (f"{name}{k}",), False, False, key, 200)
        for name, cells, key in (("a", config, planned.cost_key), ("b", other, ""))
        for k in range(41)
    ]
    words = ["run.py", "-m", "experiment=atlas", "plan=true"]
    monkeypatch.setattr(summary.sys, "argv", words)
    summary.show_plan(runs)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{chosen['learner']} │ none │ 41 │ 41 │ 0 │ 41 │ {41 * seconds:.0f} s" in printed
    assert "another │ none │ 41 │ 41 │ 0 │ 41 │ unknown" in printed
    assert "82 cells to compute; about" in printed
    assert "no earlier run tells what 41 of them cost" in printed
    assert "python run.py -m experiment=atlas split.repeats=1" in printed
