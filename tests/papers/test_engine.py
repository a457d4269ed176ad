"""The papers' mappings and contents, verdicts on printed numbers, their record and the printer."""

from dataclasses import replace
from itertools import chain
from pkgutil import resolve_name

import numpy as np
import pandas as pd
import pytest

from fairbench.components.papers.engine import mapping, matching, pages, running
from fairbench.components.papers.engine.mapping import KEYS, Paper, judge
from fairbench.components.papers.engine.matching import Effort, merge_record, recorded
from fairbench.core.errors import UserError
from fairbench.reporting.charts import Panel
from fairbench.reporting.panels import OF_METHODS
from tests.harness import CONF, ROOT, options

PAPERS = ROOT / "papers"
NAMES = mapping.papers_in(PAPERS)
EMPTY = Paper("any", pd.DataFrame(), {}, runs=10)


@pytest.mark.parametrize(
    ("printed", "half"),
    [("0.31", 0.005), ("1.1", 0.05), ("1.0", 0.05), ("-0.6", 0.05), ("21.0", 0.5), ("120.0", 5.0)],
)
def test_half_a_unit_of_the_last_digit(printed, half):
    assert mapping.half_unit(printed) == pytest.approx(half)


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(0.90, "agrees"), (0.91, "agrees"), (0.918, "agrees"), (0.919, "differs")],
)
def test_verdicts(mean, verdict):
    # Two standard errors are 2 sqrt(0.02^2 / 10 + 0.03^2 / 10) = 0.0228, half a unit is 0.0005.
    ours = {"mean": mean, "sd": 0.02, "repeats": 10}
    row = judge(EMPTY, {"metric": "nll", "value": "0.895", "sd": "0.03"}, ours)
    assert row["difference"] == pytest.approx(mean - 0.895)
    assert row["verdict"] == verdict


@pytest.mark.parametrize("ours", [None, {"mean": np.nan, "sd": np.nan, "repeats": 0}])
def test_what_was_not_run_is_said_not_to_be(ours):
    row = {"metric": "nll", "value": "0.9", "sd": "0.02"}
    assert judge(EMPTY, row, ours)["verdict"] == "not run"


def test_a_number_without_an_sd_is_taken_to_scatter_as_ours():
    # Two standard errors of the difference of one run and a mean of four are 2 sqrt(1.25) 0.02.
    paper = Paper("any", pd.DataFrame(), {}, runs=1, spread="ours", decimals={"": 2})
    row = {"metric": "nll", "value": "0.9", "sd": ""}
    bound = 2 * np.sqrt(1.25) * 0.02 + 0.005
    for mean, verdict in ((0.9 + 0.99 * bound, "agrees"), (0.9 + 1.01 * bound, "differs")):
        assert judge(paper, row, {"mean": mean, "sd": 0.02, "repeats": 4})["verdict"] == verdict
    given = {"mean": 1.0, "sd": 0.02, "repeats": 4, "error": 0.05}
    assert judge(paper, row, given)["verdict"] == "agrees"


ANY = {
    "experiment": "any", "dataset": "adult", "method": "ensemble", "intervention": "none",
    "option": "", "variant": "", "metric": "nll", "attribute": "",
    "group": "", "setting": "", "mean": 0.9, "sd": 0.02, "repeats": 10,
}  # fmt: skip
FAIRLYUNCERTAIN = Paper.read("fairlyuncertain", PAPERS)


def test_only_the_runs_own_overall_row_answers():
    own = ANY | {"metric": "consistency_max_sd", "mean": 0.08}
    others = [
        own | {"mean": 7.0, "variant": "max_depth=5"},
        own | {"mean": 8.0, "attribute": "sex", "group": "Male"},
        own | {"mean": 9.0, "method": "binomial_nll"},
        own | {"mean": 6.0, "dataset": "bank"},
        own | {"mean": 0.5, "dataset": "acs_employment_fu"},  # whose name in the paper is another
    ]
    rows = matching.compare(FAIRLYUNCERTAIN, "1", pd.DataFrame([*others, own]))
    ensembles = rows[(rows["our method"] == "ensemble") & (rows["metric"] == own["metric"])]
    mine, renamed = (
        ensembles[ensembles["dataset"] == name] for name in ("adult", "acs_employment")
    )
    assert renamed["ours"].tolist() == [0.5]
    assert mine["ours"].tolist() == mine["published"].tolist() == [0.08]
    assert "1 agrees" in mapping.scoreboard(mine)
    assert len(rows) == 40


def test_interventions_are_found_by_what_was_chosen():
    plain = ANY | {"attribute": "sex", "metric": "equalized_odds", "method": "baseline"}
    thresholds = plain | {"intervention": "threshold_optimizer"}
    rows = [
        thresholds | {"option": "equalized_odds", "mean": 1},
        thresholds | {"option": "demographic_parity"},
        plain | {"experiment": "fairlyuncertain/table8_13", "mean": 0.2},
        plain | {"experiment": "another", "mean": 0.3},
    ]
    compared = matching.compare(FAIRLYUNCERTAIN, "10", pd.DataFrame(rows))
    compared = compared.query("verdict != 'not run' and metric == 'equalized_odds'")
    found = compared.set_index("our method")["ours"]
    assert found["threshold_optimizer equalized_odds"] == 1
    assert found["threshold_optimizer demographic_parity"] == 0.9
    assert found["baseline"] == 0.2


@pytest.mark.parametrize("name", NAMES)
def test_every_published_number_has_an_answer_or_a_reason(name):
    paper = Paper.read(name, PAPERS)
    rows = paper.rows
    assert set(rows["table"]) == set(paper.tables)
    assert not rows.duplicated(["table", "metric", *KEYS]).any()
    for row in rows.to_dict("records"):
        rule = mapping.rule_of(paper.tables[row["table"]]["rules"], row)
        assert len({"metrics", "computation", "absent"} & set(rule)) >= 1, row
        assert rule.get("computation") in (None, *paper.computations)


@pytest.mark.parametrize("name", NAMES)
def test_mappings_name_what_exists(name):
    paper = Paper.read(name, PAPERS)
    methods = set(options("method"))
    for table, of_table in paper.tables.items():
        published = paper.published(table)
        for rule in of_table["rules"]:
            assert set(rule.get("settings", [])) <= set(published["setting"])
            if "absent" in rule or "computation" in rule:
                continue
            assert set(rule["metrics"]) <= set(published["metric"])
            assert set(rule.get("methods", [])) <= set(published["method"])
            for choice in rule.get("ours", [{}]):
                named = choice.get("method", "{method}").format(method="ensemble")
                assert named in methods or "{method}" in choice["method"]
                assert choice.get("experiment") in (None, *of_table["experiments"])
    named = [
        *map(paper.experiments, paper.tables),
        *(one.get("experiments", []) for one in paper.computations.values()),
        [figure["experiment"] for figure in paper.figures.values() if "draw" in figure],
    ]
    for experiment in chain.from_iterable(named):
        assert (CONF / "experiment" / f"{experiment}.yaml").is_file()
    for one in [*paper.computations.values(), *paper.figures.values()]:
        assert "draw" in one or callable(running.function_of(one["function"]))
        assert one.get("draw", "spread") in OF_METHODS


TINY = """
runs: 1
spread: ours
computations: {shares: {function: "tiny_paper:numbers", sentence: shares}}
tables:
  "1":
    rules:
      - {methods: [gone], absent: its code is not published}
      - {computation: shares}
"""
CSV = """table,dataset,sensitive_attribute,learner,method,metric,n_labelled,setting,value,sd
1,german,,,mine,share,,,0.50,
1,german,,,gone,share,,,0.75,
"""


def written(folder, **files):
    """Return the paper of these files, in a folder of its own."""
    (folder / "tiny").mkdir(parents=True)
    for name, text in files.items():
        (folder / "tiny" / name.replace("_", ".")).write_text(text)
    return Paper.read("tiny", folder)


def test_a_computation_is_stored_and_printed_beside_the_paper(tmp_path, monkeypatch, capsys):
    (tmp_path / "tiny_paper.py").write_text(
        "def numbers(rows, results, effort):\n"
        "    (place,) = rows.index\n"
        "    yield {'row': place, 'mean': 0.51, 'sd': 0.1, 'repeats': 4}\n"
        "    yield {'row': place, 'label': 'corrected', 'mean': 0.9, 'sd': 0.1, 'repeats': 4}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    paper = written(tmp_path, mapping_yaml=TINY, published_csv=CSV)
    shares = matching.Computation(paper, "shares", "1", tmp_path)
    assert not shares.is_stored()
    running.run_computation(shares, Effort.QUICK)
    assert shares.is_stored(Effort.QUICK)
    assert list(shares.numbers()["mean"]) == [0.51, 0.9]
    pages.print_paper(paper, tmp_path, "1")
    printed = capsys.readouterr().out
    assert "0.51" in printed and "agrees" in printed and "corrected" in printed
    assert "1 number has no answer: its code is not published" in printed
    table = pd.read_csv(tmp_path / "report" / "tiny" / "table1.csv")
    assert table["verdict"].tolist() == ["agrees", "differs", "no answer"]
    pages.print_paper(paper, tmp_path)
    assert "no answer" in capsys.readouterr().out


def test_numbers_that_a_paper_keeps_are_printed(tmp_path, capsys):
    kept = TINY.replace("sentence: shares", "sentence: shares, kept: n.csv")
    content = "row,mean,repeats,label,error\n0,0.6,1,,0.01\n0,0.5,1,b,0\n"
    paper = written(tmp_path, published_csv=CSV, mapping_yaml=kept, n_csv=content)
    assert not matching.Computation(paper, "shares", "1", tmp_path).is_stored()
    pages.print_paper(paper, tmp_path, "1")
    printed = capsys.readouterr().out.split()
    for name, *cells in (
        ("mine", "mine", "0.50", "0.600", "0.100", "unexplained"),
        ("mine", "b", "0.50", "0.500", "0.000", "(agrees)"),
    ):
        assert " ".join([name, *cells]) in " ".join(printed)


def test_a_quick_look_is_of_small_data_and_few_repeats():
    paper = FAIRLYUNCERTAIN
    words = list(running.sweeps(paper, ["1"], Effort.QUICK))
    assert words == [["experiment=fairlyuncertain/table1", "split.repeats=2", "dataset=german"]]
    named = [words[0] for words in running.sweeps(paper)]
    assert len(named) == len(set(named)) > 8
    assert list(running.figure_sweeps(paper, ["3"])) == [["experiment=fairlyuncertain/figure3"]]
    assert ["experiment=fairlyuncertain/table8_13"] in list(running.sweeps(paper, ["8"]))


def test_a_quick_look_leaves_out_what_the_mapping_names_and_varies_less():
    paper = Paper.read("uncertainty_fairness", PAPERS)
    quick = {words[0]: words[1:] for words in running.sweeps(paper, effort=Effort.QUICK)}
    whole = {words[0] for words in running.sweeps(paper)}
    left_out = {f"experiment={name}" for name in paper.quick["leave_out"]}
    assert left_out <= whole
    assert set(quick) == whole - left_out
    synthetic = quick["experiment=uncertainty_fairness/sd1_3_trained"]
    assert synthetic == ["split.repeats=1", "dataset.seed=0"]
    assert quick["experiment=uncertainty_fairness/compas_trained"] == ["split.repeats=1"]


def test_a_figure_is_drawn_of_the_runs_that_are_there(tmp_path, monkeypatch):
    paper = FAIRLYUNCERTAIN
    with pytest.raises(UserError, match="make them with fairbench run -m experiment=fairlyunc"):
        running.draw_figure(paper, "3", tmp_path)
    metrics = pd.DataFrame({"metric": ["spread"], "value": [1.0]})
    run = ({"dataset": "german", "method": "ensemble"}, None, metrics)
    monkeypatch.setattr(running, "runs_needed", lambda *asked: [run])
    monkeypatch.setitem(
        OF_METHODS, "spread", lambda rows, _: [(rows["method"].iloc[0], Panel([], "x", "y"))]
    )
    paths = running.draw_figure(paper, "3", tmp_path)
    assert paths == [tmp_path / "report/fairlyuncertain/figures/figure3_ensemble.png"]
    assert all(path.is_file() for path in paths)


CONTENTS = """
- {item: Table 1, place: Table 1, what: shares, ours: The same., table: "1"}
- item: Claim
  place: section 2
  what: all is well
  ours: Three is printed.
  command: python -c "print(3)"
  verdict: holds
  quick: false
- {item: Table 2, place: Table 2, what: others, absent: the data were not released}
"""


@pytest.fixture
def tiny(tmp_path):
    """Return a paper of one table, in a folder of its own."""
    table = 'title: Tiny\ntables: {"1": {rules: []}}\nbrief: {claims: It is., found: It is not.}\n'
    return written(
        tmp_path / "papers", mapping_yaml=table, contents_yaml=CONTENTS, published_csv=CSV
    )


def numbers(*verdicts, whole=True):
    """Return a number of table 1 for each verdict."""
    front = {"table": "1", **dict.fromkeys(KEYS, ""), "value": "0.5", "sd": "0.02", "reason": ""}
    ours = {"ours": 0.1234567, "our sd": 0.1, "repeats": 3.0, "difference": 0.01}
    ours |= {"cause": "", "ours under it": float("nan")}
    return pd.DataFrame(
        {**front, **ours, "metric": f"m{place}", "verdict": verdict, "whole": whole}
        for place, verdict in enumerate(verdicts)
    )


def record_of(paper, *verdicts):
    matching.write_record(paper, merge_record(numbers(*verdicts), recorded(paper)))
    return recorded(paper)


def test_a_record_keeps_what_a_smaller_look_did_not_settle(tiny):
    before = record_of(tiny, "agrees", "agrees", "not run")
    assert before["verdict"].tolist() == ["agrees", "agrees", "not run"]
    assert before["ours"].tolist()[0] == 0.123457
    small = numbers("unexplained", "not run", "unexplained", whole=False)
    assert merge_record(small, before)["verdict"].tolist() == [*before["verdict"]]
    assert matching.changes(small, before).empty
    again = numbers("unexplained", "agrees", "agrees")
    assert matching.changes(again, before)["before"].tolist() == ["agrees"]
    assert merge_record(again, before)["verdict"].tolist() == [*again["verdict"]]


def test_every_row_has_a_verdict_or_says_why_not(tiny):
    record = record_of(tiny, "agrees", "unexplained", "no answer")
    table, claim, absent = matching.row_answers(tiny, record)
    assert (table.verdict, table.score) == ("agrees in part", "1 of 2")
    assert (claim.verdict, claim.row.command) == ("holds", 'python -c "print(3)"')
    assert (absent.verdict, absent.note) == ("cannot be had", "the data were not released")
    first, own = pages.pages([tiny]).values()
    # Two numbers are compared, each off by 0.01 of a printed sd of 0.02.
    assert "| [tiny](papers/tiny.md) | 3 | 2 | 1 | 0 | 0 | 1 | 50 % | 0.50 | 0.50 |" in first
    assert "- **all is well.** (section 2) *Holds.* Three is printed. `python -c" in own
    assert "`fairbench paper tiny table=N run=true` runs what a table needs" in own
    assert "| Table 1 | shares. | 1 of 2 | 0 | 1 | 0.50, 0.50 |" in own
    assert "Not compared: Table 1 (1); they were not run." in own
    assert "1 of table 1: `papers/tiny/verdicts.csv` has them, with ours;" in own


def test_a_cause_that_agrees_and_a_number_that_cannot_be_are_no_longer_unexplained(tiny):
    causes = {"released code": "the code's gradient", "other split": "another draw"}
    rule = {"settings": ["alpha=1"], "because": "it contradicts Table 2", "test": "tests/a.py::b"}
    paper = replace(tiny, causes=causes, impossible=(rule,))

    def answer(verdict, cause="", ours=0.2):
        return {"verdict": verdict, "cause": cause, "ours": ours}

    number = {"table": "1", "metric": "m", **dict.fromkeys(KEYS, "")}
    first = answer("differs")
    explained = [first, answer("differs", "released code"), answer("agrees", "other split", 0.5)]
    assert mapping.settle(paper, number, explained) == {
        "verdict": "agrees under a cause", "cause": "other split", "ours under it": 0.5,
    }  # fmt: skip
    assert mapping.settle(paper, number, [answer("agrees"), *explained])["verdict"] == "agrees"
    assert mapping.settle(paper, number, [answer("not run"), *explained])["verdict"] == "not run"
    # An answer that is merely shown beside, without a cause, explains nothing.
    assert mapping.settle(paper, number, [first, answer("agrees")])["verdict"] == "unexplained"
    impossible = {**number, "setting": "alpha=1"}
    assert mapping.settle(paper, impossible, [first])["verdict"] == "cannot be"


def test_a_distance_is_in_printed_sds_or_in_the_papers_own_scatter():
    rows = numbers("agrees", "agrees").assign(metric="m", value=["0.4", "0.6"])
    rows["difference"] = [0.02, -0.06]
    assert mapping.distance(rows) == pytest.approx((1 + 3) / 2)
    # The sd of 0.4 and 0.6 is 0.2 / sqrt(2).
    assert mapping.distance(rows.assign(sd="")) == pytest.approx(0.04 / (0.2 / 2**0.5))
    assert np.isnan(mapping.distance(rows.assign(sd="", value="0.5")))
    # Under a cause the second of them is 0.61, off by half a printed sd.
    explained = rows.assign(**{"ours under it": [np.nan, 0.61]})
    assert mapping.distance(explained, under_causes=True) == pytest.approx((1 + 0.5) / 2)
    assert mapping.distance(explained) == pytest.approx(2)


def test_what_fails_is_reported_and_the_rest_is_run(tmp_path, capsys):
    def refuse():
        raise UserError("the file is not there")

    done = []
    every = [
        running.PaperPart("tiny", "zero", lambda: [tmp_path / "figure1.png"]),
        running.PaperPart("tiny", "one", refuse),
        running.PaperPart("tiny", "two", lambda: 1 / 0),
        running.PaperPart("tiny", "three", lambda: done.append(3)),
    ]
    failures = running.carry_out(every)
    assert done == [3]
    assert [failure.reason for failure in failures][0] == "the file is not there"
    assert failures[0].trace == "" and "ZeroDivisionError" in failures[1].trace
    printed = capsys.readouterr().out
    assert "[4 of 4] tiny, three" in printed
    assert f"[1 of 4] tiny, zero\n  written: {tmp_path / 'figure1.png'}\n" in printed


def test_a_study_is_run_once_for_its_code(tiny, tmp_path):
    for expected in (1, 0):
        studies = list(running.study_parts(tiny, tmp_path, Effort.WHOLE))
        assert len(studies) == expected
        assert running.carry_out(studies) == []
    (path,) = (tmp_path / "report" / "tiny" / "studies").iterdir()
    assert path.read_text().splitlines()[1:] == ["3"]
    assert list(running.study_parts(tiny, tmp_path, Effort.QUICK)) == []
    (tiny.folder / "study.py").write_text("x = 1\n")
    assert len(list(running.study_parts(tiny, tmp_path, Effort.WHOLE))) == 1


def test_a_study_that_fails_says_why(tiny, tmp_path):
    words = ["-c", "import sys; print('error: no runs', file=sys.stderr); sys.exit(2)"]
    with pytest.raises(UserError, match="^no runs$"):
        running.run_study(tiny, words, tmp_path / "study.txt")
    assert not (tmp_path / "study.txt").exists()


def test_a_quick_look_is_recorded_nowhere(refused, tmp_path):
    words = ["paper", "few_labels", "quick=true", "run=true", "record=true", f"results={tmp_path}"]
    refused(*words, message="record=true writes what has the papers' size")
    assert not (tmp_path / "papers").exists()


@pytest.mark.parametrize("name", NAMES)
def test_contents_name_what_exists_and_what_cannot_be_is_shown_by_a_test(name):
    paper = Paper.read(name, PAPERS)
    rows = mapping.contents(paper)
    for listed in ([row.item for row in rows], [row.table for row in rows if row.is_counted]):
        assert len(listed) == len(set(listed))
    for kind, mapped in (("table", paper.tables), ("figure", paper.figures)):
        assert {getattr(row, kind) for row in rows} - {""} == set(mapped)
    for row in rows:
        assert row.item and row.what and row.place, row
        assert row.ours or row.kind in ("words", "absent"), row
        judged = row.kind != "absent" and not row.is_counted
        assert row.verdict in (mapping.ROW_VERDICTS if judged else [""]), row
        assert row.kind == "table" or not row.other_data, row
        assert row.kind == "command" or row.quick == "", row
        if row.kind == "code":
            assert resolve_name(row.code) is not None
        if row.kind == "dataset":
            files = [CONF / group / f"{row.dataset}.yaml" for group in ("dataset", "scores")]
            assert any(path.is_file() for path in files), row
        assert not row.test or is_a_test(row.test), row
    for rule in paper.impossible:
        assert rule["because"] and is_a_test(rule["test"]), rule
    assert set(recorded(paper)["cause"]) <= {"", *paper.causes}


def is_a_test(name):
    """Say whether there is a test of a name such as ``tests/a.py::test_b[case]``."""
    file, _, test = name.partition("::")
    return f"def {test.partition('[')[0]}(" in (ROOT / file).read_text()


@pytest.mark.thorough
def test_the_page_of_the_papers_is_current_and_opens_with_an_answer_for_each():
    papers = [Paper.read(name, PAPERS) for name in NAMES]
    assert all(paper.brief["claims"] and paper.brief["found"] for paper in papers)
    written = pages.pages(papers)
    assert next(iter(written)) == pages.PAGE
    for path, text in written.items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, (
            "write it anew: fairbench paper all record=true"
        )
    folder = ROOT / pages.PAGE.with_suffix("")
    assert {path.name for path in folder.iterdir()} == {f"{paper.name}.md" for paper in papers}


def test_verdicts_that_changed_are_listed(tiny, capsys):
    record = record_of(tiny, "agrees", "agrees")
    pages.print_changes(tiny, matching.changes(numbers("agrees", "unexplained"), record))
    line = "tiny, table 1, m1: unexplained (recorded: agrees); theirs 0.5, ours 0.1235\n"
    assert capsys.readouterr().out == line
