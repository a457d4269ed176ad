"""fairbench watch from its words: a file that grows, a file each week, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.sentences import can_be_concluded, cannot_be_concluded
from fairbench.cli.main import main
from fairbench.core.files import sealed_json, unsealed_json
from fairbench.evaluation.findings import Finding
from fairbench_watch.alarms import WatchFile
from fairbench_watch.page import watch_document
from tests.audits.tables import predictions

USUAL = ("target=label", "score=score", "group=sex")


def rows(number, *, seed=0, against=0.0):
    """Return predictions by sex; women's scores, and so decisions, are lower by `against`."""
    frame = predictions(number, seed=seed)[["sex", "score", "label"]]
    lower = np.clip(frame["score"] - against, 0.001, 1)
    score = frame["score"].where(frame["sex"] == "Male", lower).round(4)
    return frame.assign(score=score, label=frame["label"].astype(str))


@pytest.fixture
def look(tmp_path, capsys):
    """Return a function that writes a table and looks at it: exit status and what was printed."""

    def once(frame, *words, name="p.csv", status=0):
        frame.to_csv(tmp_path / name, index=False)
        state = f"state={tmp_path / 's.json'}"
        command = ["watch", str(tmp_path / name), state, f"out={tmp_path / 'page'}", *words]
        assert main(command) == status
        printed = capsys.readouterr()
        if status == 2:
            assert printed.err.count("\n") == 1
            assert printed.out == ""
            return printed.err
        return " ".join(printed.out.split())

    return once


@pytest.fixture
def state(tmp_path):
    return tmp_path / "s.json"


def content(state):
    return json.loads(state.read_text())


@pytest.mark.thorough
def test_a_file_that_grows_is_counted_on(look, state, tmp_path):
    frame = rows(900)
    assert "Watched: 600 rows, 600 of them with a label" in look(frame[:600], *USUAL)
    first = content(state)
    assert "nothing is new" in look(frame[:600], *USUAL)
    assert content(state) == first
    assert "300 rows and 300 labels are new in p.csv" in look(frame)
    assert [mark["row"] for mark in content(state)["marks"]] == [600, 900]
    assert json.loads((tmp_path / "page" / "watch.json").read_text())["rows"] == 900
    assert (tmp_path / "page" / "watch.html").read_text().count("<svg") >= 5
    whole = json.loads(state.read_text())["marks"][-1]["counts"]
    state.unlink()
    look(frame, *USUAL)
    assert content(state)["marks"][-1]["counts"] == whole


@pytest.mark.thorough
def test_a_gap_is_an_alarm_that_stays_and_every_sentence_of_the_page_words_a_finding(look, state):
    out = look(rows(6000, against=0.4), *USUAL, status=1)
    assert "Female less Male, selection rate: the gap is beyond 0.05" in out
    alarm = content(state)["alarms"][0]
    assert (alarm["kind"], alarm["since"]) == ("passed", 0)
    assert 0 < alarm["row"] < 1500
    assert "nothing is new" in look(rows(6000, against=0.4), status=1)
    assert content(state)["alarms"][0] == alarm
    document = watch_document(WatchFile(state).read(), None)
    plain = pd.DataFrame(document.data["findings"]).drop(columns="sentence").to_dict("records")
    findings = [Finding(**row) for row in plain]
    assert document.verdict.can == can_be_concluded(findings) != []
    assert document.verdict.cannot == cannot_be_concluded(findings)


@pytest.mark.thorough
def test_a_gap_that_is_surely_small_is_said_to_be(look):
    calm = rows(20_000).assign(score=lambda frame: (frame["score"] > 0.5).astype(float))
    out = look(calm, *USUAL, "metrics=[statistical_parity]", "epsilon=0.2")
    assert "Female less Male, selection rate: the gap is at most 0.2 (" in out


@pytest.mark.thorough
def test_a_change_is_an_alarm(look, state):
    calm = rows(6000)
    assert look(calm, *USUAL, "metrics=[statistical_parity]")
    moved = pd.concat([calm, rows(2500, seed=1, against=0.3)])
    assert "the gap has changed" in look(moved, status=1)
    kinds = {alarm["kind"]: alarm for alarm in content(state)["alarms"]}
    assert 5000 <= kinds["changed"]["since"] <= 7000
    assert kinds["changed"]["upper"] < kinds["changed"]["before"][0]


@pytest.mark.thorough
def test_scores_that_drift_are_an_alarm(look, state):
    calm, other = rows(6000), rows(4000, seed=1)
    other["label"] = np.where(other["score"] < 0.5, "1", other["label"])
    look(calm, *USUAL, "metrics=[statistical_parity]")
    out = look(pd.concat([calm, other]), status=1)
    assert "scores of negative decisions: they have drifted" in out
    assert {alarm["kind"] for alarm in content(state)["alarms"]} == {"drifted"}


@pytest.mark.thorough
def test_labels_that_come_late_are_counted_when_they_come(look, state):
    frame = rows(600)
    early = frame.assign(label=frame["label"].where(frame.index < 200, ""))
    assert "600 rows, 200 of them with a label" in look(early, *USUAL)
    assert "0 rows and 400 labels are new in p.csv" in look(frame)
    late = content(state)["marks"][-1]
    state.unlink()
    look(frame, *USUAL)
    assert content(state)["marks"][-1]["counts"] == late["counts"]


@pytest.mark.thorough
def test_a_new_file_each_week(look, state):
    weeks = [rows(300, seed=i).assign(week=f"week {i}") for i in (8, 9, 10, 11)]
    look(weeks[0], *USUAL, "time=week", name="a.csv")
    look(weeks[1], name="b.csv")
    look(pd.concat([weeks[1], weeks[3], weeks[2]]), name="c.csv")  # two at once, in any order
    assert [mark["period"] for mark in content(state)["marks"]] == [
        "week 8", "week 9", "week 10", "week 11",
    ]  # fmt: skip
    more = pd.concat([weeks[3], rows(20, seed=99).assign(week="week 11")])
    assert "20 rows" in look(more, name="d.csv")
    sentence = look(rows(5).assign(week="week 7"), name="e.csv", status=2)
    assert "period 'week 7' has 5 rows that are new, and 'week 11' was looked at" in sentence
    sentence = look(weeks[1][:100], name="f.csv", status=2)
    assert "period 'week 9' has 100 rows, and 300 were seen" in sentence


OTHER_LABEL = {"0": "1", "1": "0"}
FAULTS = {
    "shrank": (lambda frame: frame[:299], "has 299 rows, and 300 were seen"),
    "reordered": (
        lambda frame: frame.iloc[[1, 0, *range(2, 300)]],
        "rows 1 to 300 are in another order than when they were seen",
    ),
    "relabelled": (
        lambda frame: frame.assign(
            label=frame["label"].where(frame.index != 5, frame["label"].map(OTHER_LABEL))
        ),
        "the label of row 6 was",
    ),
    "unlabelled": (lambda frame: frame.assign(label=""), "the label of row 1 was"),
    "other score": (lambda frame: frame.assign(score=0.5), "are not those that were seen"),
    "row in between": (lambda frame: pd.concat([frame[:1], frame]), "are not those that were seen"),
    "other columns": (lambda frame: frame.rename(columns={"sex": "s"}), "has no column 'sex'"),
    "third label": (lambda frame: pd.concat([frame, frame.assign(label="2")]), "row 301: '2'"),
    "score": (lambda frame: pd.concat([frame, frame.assign(score=300)]), "a probability"),
    "empty": (lambda frame: frame[:0], "no rows below the header"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("edit", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_file_that_is_not_what_was_watched_is_one_sentence_and_loses_nothing(
    edit, sentence, look, state
):
    frame = rows(300)
    look(frame, *USUAL)
    before = state.read_bytes()
    assert sentence in look(edit(frame), status=2)
    assert "started with another epsilon" in look(frame, *USUAL, "epsilon=0.1", status=2)
    assert state.read_bytes() == before
    assert "nothing is new" in look(frame)


WORDS = {
    "no group": (["score=score"], "no groups to compare"),
    "metric": ([*USUAL, "metrics=[equal_oportunity]"], "did you mean equal_opportunity"),
    "labels": (["score=score", "group=sex", "metrics=[accuracy_gap]"], "needs labels"),
    "one group": ([*USUAL[:2], "group=one"], "column 'one' holds 1 different values"),
    "no column": ([*USUAL, "time=wek"], "p.csv has no column 'wek'"),
    "epsilon": ([*USUAL, "epsilon=2"], "epsilon is 2"),
}


@pytest.mark.parametrize(("words", "sentence"), WORDS.values(), ids=WORDS)
def test_what_cannot_be_watched_is_refused(words, sentence, look, state):
    assert sentence in look(rows(50).assign(one="x"), *words, status=2)
    assert not state.exists()


def test_no_state_is_named(capsys):
    assert main(["watch", "x.csv"]) == 2
    assert "no state file is named, in which the watch is kept" in capsys.readouterr().err


@pytest.mark.thorough
def test_groups_that_come_later_are_named(look):
    frame = rows(300)
    look(frame, *USUAL)
    out = look(pd.concat([frame, rows(20, seed=1).assign(sex="Other")]))
    assert "not watched: sex: Other (20 rows)" in out


def test_without_labels_decisions_are_watched(look, state):
    assert "selection rate" in look(rows(300).drop(columns="label"), "score=score", "group=sex")
    assert list(content(state)["shares"]) == ["sex: Female less Male, selection rate"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("names", "said", "words"),
    [(["late", "paid"], ["late", "paid"], ["positive=paid"]), (["no", "yes"], [0, 1], [])],
    ids=["decisions as labels", "decisions 0 and 1"],
)
def test_labels_with_names_and_decisions_of_a_column(names, said, words, look, state):
    frame = rows(300)
    named = frame.assign(
        label=np.where(frame["label"] == "1", names[1], names[0]),
        said=np.where(frame["score"] > 0.3, said[1], said[0]),
    )
    only = named.assign(label=named["label"].where(named["label"] == names[1], ""))
    look(only[:50], "target=label", "prediction=said", "group=sex", *words)
    assert content(state)["names"] == []
    look(named)
    assert content(state)["names"] == names


@pytest.mark.thorough
def test_combinations_and_bands_of_columns_are_groups(look, state):
    frame = rows(1200).assign(
        race=np.tile(["White", "Black", ""], 400), age=np.tile([20, 35, 70], 400)
    )
    look(frame, *USUAL[:2], "group=[sex,sex x race,sex x age:30,50]")
    groups = content(state)["groups"]
    assert set(groups["sex"]) == {"Male", "Female"}
    assert len(groups["sex x race"]) == 6
    assert "Female x Black" in groups["sex x race"]
    assert "Male x 30 to under 50" in groups["sex x age"]
    counts = content(state)["marks"][-1]["counts"]
    whole, parts = (np.array(counts[name]).sum(axis=0) for name in ("sex", "sex x race"))
    np.testing.assert_allclose(whole, parts)
    assert "race" in look(rows(900), status=2)


@pytest.mark.thorough
def test_scores_may_be_percents(look, state):
    frame, marks = rows(900), {}
    percents = frame.assign(score=100 * frame["score"])
    assert "give scale=percent" in look(percents[:600], *USUAL, status=2)
    for scale, table in (("percent", percents), ("probability", frame)):
        look(table[:600], *USUAL, f"scale={scale}")
        look(table)
        assert content(state)["options"]["scale"] == scale
        marks[scale] = content(state)["marks"]
        state.unlink()
    for of_percents, plain in zip(*marks.values(), strict=True):
        for group, sums in of_percents["counts"].items():
            np.testing.assert_allclose(sums, plain["counts"][group], atol=1e-9)


@pytest.mark.thorough
def test_a_state_from_before_scales_is_of_probabilities(look, state):
    frame = rows(900)
    look(frame[:600], *USUAL)
    values = unsealed_json(state.read_bytes())
    del values["options"]["scale"]
    state.write_text(sealed_json(values))
    assert "900 rows" in look(frame)
    assert content(state)["options"]["scale"] == "probability"
