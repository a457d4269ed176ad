"""What is kept of a sweep, and how it is called: one name for one sweep, however often given."""

import pytest

from fairbench.cli.jobs import _sweep_name as sweep_name
from fairbench.results.upkeep import keep_sweep, read_sweeps

DONE = [
    {"job": "seed=1 dataset=adult", "status": "finished", "run": "a", "message": ""},
    {"job": "dataset=german seed=1", "status": "finished", "run": "b", "message": ""},
    {"job": "dataset=acs seed=1", "status": "failed", "run": None, "message": "no data"},
]


def test_a_sweep_is_called_by_what_changes_its_runs():
    name = sweep_name(["method=ensemble,baseline", "n_jobs=4", "dataset=adult"])
    assert name == "dataset=adult method=ensemble,baseline"
    words = ["dataset=adult", "hydra/launcher=slurm", "method=ensemble,baseline", "results=old"]
    assert sweep_name(words) == name
    assert sweep_name([*words, "seed=1"]) != name
    preset = sweep_name(["split.repeats=3", "experiment=fairlyuncertain/table1"])
    assert preset == "experiment=fairlyuncertain/table1 split.repeats=3"


def test_long_names_are_cut_and_stay_different():
    seeds = ",".join(map(str, range(1000)))
    one, other = (sweep_name([f"seed={seeds},{last}"]) for last in (1, 2))
    assert one != other
    assert len(one) <= 400 and one[:300] == other[:300]


def test_what_was_kept_is_read_the_oldest_first(tmp_path):
    keep_sweep(tmp_path / "sweeps" / "2026-01-02", "dataset=adult,german", DONE[::-1])
    keep_sweep(tmp_path / "sweeps" / "2026-01-01", "seed=1", [*DONE, *DONE])
    keep_sweep(tmp_path / "sweeps" / "2026-01-03", "none finished", DONE[2:])
    (tmp_path / "sweeps" / "2026-01-04").mkdir()  # killed
    assert read_sweeps(tmp_path) == [
        ("seed=1", ("a", "b")), ("dataset=adult,german", ("b", "a")),
    ]  # fmt: skip
    assert read_sweeps(tmp_path / "nowhere") == []


@pytest.mark.parametrize("content", ["{", '"text"', '[{"status": "finished"}]', "\x00"])
def test_a_damaged_list_is_left_out_and_named(tmp_path, capsys, content):
    keep_sweep(tmp_path / "sweeps" / "one", "seed=1", DONE)
    keep_sweep(tmp_path / "sweeps" / "two", "seed=2", DONE)
    (tmp_path / "sweeps" / "one" / "outcomes.json").write_text(content)
    assert [name for name, _ in read_sweeps(tmp_path)] == ["seed=2"]
    assert "one is left out" in capsys.readouterr().err
