"""The one table of many runs: what each row says is what the run's own table says."""

import numpy as np
import pandas as pd
import pytest

from fairbench.comparison.runs import without_copies
from fairbench.core.errors import UserError
from fairbench.evaluation.table import values_of
from fairbench.experiments.execute import carry_out
from fairbench.reporting.page.tables import blocks
from fairbench.results.catalogue import Catalogue
from fairbench.results.upkeep import pack, unpack
from fairbench_rank.approaches import NEEDS_GROUP, approach_table
from fairbench_rank.sources import benchmark_scores
from tests.harness import configuration
from tests.reporting import page_runs

SPLIT = ("split.repeats=2", "split.validation=0.25", "learner=logistic_regression")
RELAXED = "evaluator.relaxations=[0,1]"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas") / "results"
    page_runs.finish(folder, *SPLIT)  # the same as the next, which has more settings
    path = page_runs.finish(folder, *SPLIT, RELAXED)
    dir_ = page_runs.finish(folder, *SPLIT, "intervention=disparate_impact_remover")
    page_runs.copy(dir_, config={"intervention.repair_level": 0.5})
    page_runs.finish(folder, "learner=logistic_regression", "split.repeats=1")  # another split
    return folder, path.name


@pytest.mark.thorough
def test_a_row_is_a_task_an_approach_a_setting_and_a_repeat(results):
    folder, plain = results
    table = approach_table(list(Catalogue(folder)))
    keys = ["dataset", "protect", "learner", "intervention", "method", "options", "setting"]
    assert not table.duplicated([*keys, "seed", "repeat"]).any()
    assert table["run"].nunique() == 3
    assert set(table["options"]) == {
        "",
        "intervention.repair_level=0.5",
        "intervention.repair_level=1.0",
    }
    own = table[(table["run"] == plain) & (table["setting"] == "")].set_index("repeat")
    metrics = values_of(Catalogue(folder).runs[plain].all_metrics())
    for name in ("error_rate", "equalized_odds", "log_loss", "fit_seconds"):
        long = metrics[(metrics["metric"] == name) & (metrics["group"] == "")]
        long = long[long["rate"].isna() & long["attribute"].isin(["", own["protect"].iloc[0]])]
        assert long.set_index("repeat")["value"].to_dict() == own[name].to_dict()
    assert own["test_share"].iloc[0] == pytest.approx(60 / (60 + 180), abs=0.01)


def test_thresholds_and_abstaining_are_settings(results):
    folder, plain = results
    table = approach_table(list(Catalogue(folder)))
    settings = set(table.loc[table["run"] == plain, "setting"])
    assert {"", "abstained=0.2", "statistical_parity<=0", "equalized_odds<=1"} <= settings
    relaxed = table[table["setting"] == "statistical_parity<=0"]
    assert np.isfinite(relaxed[["error_rate", "statistical_parity"]].to_numpy()).all()
    assert relaxed["equalized_odds"].isna().all()
    assert relaxed["group_at_prediction"].all()
    by = table[table["setting"] == ""].groupby("intervention")["group_at_prediction"].all()
    assert by.to_dict() == {"none": False, "disparate_impact_remover": True}


def test_parts_of_runs_are_named_as_all_are(results):
    assert approach_table([]).empty
    folder, _ = results
    runs = list(Catalogue(folder))
    (half,) = (run for run in runs if run.config["intervention"].get("repair_level") == 0.5)
    assert set(approach_table([half])["options"]) == {""}
    (told,) = set(approach_table([half], among=runs)["options"])
    assert "intervention.repair_level=0.5" in told.split()


def test_runs_of_a_folder_and_of_an_unpacked_one_are_scores_to_rank(results, tmp_path):
    folder, plain = results
    table = benchmark_scores(folder, ["error_rate", "equalized_odds"])
    assert table.format == "fairbench runs" and table.costs == ("fit_seconds", "predict_seconds")
    assert {score.name: score.better for score in table.scores} == {
        "error_rate": "lower", "equalized_odds": "lower",
    }  # fmt: skip
    wide = approach_table(list(Catalogue(folder)))
    wide = wide[(wide["run"] == plain) & (wide["setting"] == "")]
    own = table.frame.query("method == 'logistic_regression, binomial_nll'")
    assert own["error_rate"].tolist() == wide["error_rate"].tolist()
    assert own["split"].tolist() == ["0.0", "0.1"]
    assert set(table.frame["method"]) == {
        "logistic_regression, binomial_nll",
        f"logistic_regression, disparate_impact_remover 0.5, binomial_nll ({NEEDS_GROUP})",
        f"logistic_regression, disparate_impact_remover 1.0, binomial_nll ({NEEDS_GROUP})",
    }
    pack(list(Catalogue(folder)), tmp_path / "pack.zip", cells=False)
    with pytest.raises(UserError, match="pack.zip is a pack: fairbench store unpack"):
        benchmark_scores(tmp_path / "pack.zip", ["error_rate", "equalized_odds"])
    unpack(tmp_path / "pack.zip", tmp_path / "unpacked")
    unpacked = benchmark_scores(tmp_path / "unpacked", ["error_rate", "equalized_odds"])
    assert unpacked.frame.equals(table.frame)
    with pytest.raises(UserError, match=r"the fairbench runs have \d+ scores: .*; name the one"):
        benchmark_scores(folder)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the runs of one file under four paths, one of which is another name, and of another.

    Each has two ids by path, and the same learner.
    """
    folder = tmp_path_factory.mktemp("files")
    draw = np.random.default_rng(0)
    table = ("dataset=table", "dataset.target=y", "dataset.sensitive=[sex]", "split.repeats=2")
    for name in ("x/people", "x/again", "y/people"):
        path = folder / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        people = pd.DataFrame({"a": draw.normal(size=80), "sex": draw.choice(["f", "m"], 80)})
        people["y"] = (people["a"] + draw.normal(size=80) > 0).astype(int)
        people.round(3).to_csv(path, index=False)
        if name == "x/again":
            path.write_bytes((folder / "x" / "people.csv").read_bytes())
        options = (*table, f"dataset.path={path}", "learner=logistic_regression")
        run = carry_out(configuration(*options, "tracking=none", results=folder / "results"))
        for other in (f"./{name}.csv", f"../z/{name}.csv"):
            page_runs.copy(run.prepared.folder.path, config={"dataset.path": other})
    return folder / "results"


@pytest.mark.thorough
def test_a_file_is_what_is_in_it_and_one_task_by_any_path(files):
    runs = list(Catalogue(files))
    assert len(runs) == 9
    table = approach_table(runs)
    paths = [run.config["dataset"]["path"] for run in runs]  # in the order of their ids
    first = [next(path for path in paths if part in path) for part in ("/x/", "/y/")]
    assert set(table["dataset"]) == {f"table path={path}" for path in first}
    assert table["family"].nunique() == table["run"].nunique() == 2
    assert len(table[table["setting"] == ""]) == 4  # two repeats of either
    assert [len(block.runs) for block in blocks(Catalogue(files))] == [3, 3, 3]
    one = [run for run in runs if run.config["dataset"]["path"].endswith("/x/people.csv")]
    (told,) = set(approach_table(one)["dataset"])
    assert told == "table"
    sets = Catalogue(files).comparable()
    assert [len(each) for each in sets] == [3, 3, 3]
    for each in sets:
        kept, notes = without_copies(list(each))
        assert len(kept) == 1 and len(notes) == 2
        assert f"is run {kept[0].id} again" in notes[0]
