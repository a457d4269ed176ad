"""Running a composed run: what it leaves behind, and when its figures are drawn."""

import pytest

from fairbench.core.files import token
from fairbench.experiments.execute import carry_out
from fairbench.reporting.figures import draw_figures
from tests.harness import TINY, configuration


def test_figures_can_wait_and_are_then_drawn_without_fitting(tmp_path):
    config = configuration(*TINY, results=tmp_path)
    first = carry_out(config)
    folder = first.prepared.folder
    assert first.computed == 1
    assert not folder.figures.exists()
    assert carry_out(config, draw=draw_figures).computed == 0
    drawn = {path.name for path in folder.figures.iterdir()}
    assert "reliability.png" in drawn
    assert not list(folder.path.glob(".figures*"))
    times = [path.stat().st_mtime_ns for path in sorted(folder.figures.iterdir())]
    carry_out(config)
    assert [path.stat().st_mtime_ns for path in sorted(folder.figures.iterdir())] == times


@pytest.mark.thorough
def test_half_drawn_figures_of_a_killed_process_go_with_the_next_run(tmp_path):
    config = configuration(*TINY, results=tmp_path)
    folder = carry_out(config).prepared.folder
    half, own = (folder.path / f".figures.{name}" for name in (f"{token()}.tmp", "own"))
    for place in (half, own):
        place.mkdir()
        (place / "reliability.png").write_bytes(b"half")
    carry_out(config, draw=draw_figures)
    assert not half.exists()
    assert own.exists()
    (folder.figures / "thesis.docx").write_text("somebody's own")
    carry_out(config, draw=draw_figures)
    (aside,) = folder.path.glob("figures.damaged-*")
    assert (aside / "thesis.docx").read_text() == "somebody's own"
    assert (folder.figures / "reliability.png").exists()


@pytest.mark.thorough
def test_a_run_says_what_its_task_is(tmp_path):
    words = ("dataset=simulated", "dataset.n_samples=200", "split.repeats=2")
    run = carry_out(configuration(*TINY, *words, results=tmp_path)).prepared
    data, task = run.dataset, run.folder.environment["task"]
    shares = data.groups("group").value_counts(normalize=True)
    assert task == {
        "family": "simulated", "rows": 200, "features": 6 + 1, "groups": 2,
        "positive_share": data.target.mean(), "smallest_group_share": shares.min(),
    }  # fmt: skip
