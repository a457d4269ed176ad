"""Small inputs that once came out wrong, each with the value that is right.

They were made from public reports of neighbouring projects and from trials by hand. A case is a
symptom: the kinds behind them are held by tests/properties and the tests of each package. That a
file is one task by any path (the ninth) is tested in tests/extensions/rank/test_leaderboard.py, and
that no fit depends on the unit of its target (the 13th) in tests/algorithms/test_units.py.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from mlflow.data.evaluation_dataset import EvaluationDataset

import fairbench
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.components.datasets import table
from fairbench.core.errors import UserError
from fairbench.data.download import Archive
from fairbench.data.features import Encoder, Encoding
from fairbench.results.runs import Run
from fairbench.tracking.entries import values_of_evaluation
from fairbench.tracking.model_evaluator import _evaluate
from fairbench_rank.sources import benchmark_scores
from tests.audits.tables import shown_by
from tests.harness import fairbench as fairbench_command
from tests.harness import run_folder

pytestmark = pytest.mark.filterwarnings("ignore")  # pandas and MLflow warn of themselves
DRAW = np.random.default_rng(0)


def loaded(path, **options):
    """Return a file as ``dataset=table`` loads it, to predict y."""
    archive = Archive(search_path=(path.parent,), store=path.parent, verify=False, download=False)
    return table.load(archive, path=str(path), **{"target": "y", "sensitive": ["sex"]} | options)


def written(folder, name, text):
    """Write a file, its rows separated by blanks, and return its path."""
    path = folder / name
    path.write_text("\n".join(text.split()) + "\n", encoding="utf-8")
    return path


def rows_of(metric, target, prediction, **arrays):
    """Return [group, rows] of a metric of arrays, without everyone."""
    found = fairbench.evaluate(target, prediction, **arrays)
    asked = f"metric == '{metric}' and statistic == 'value' and attribute != ''"
    return found.query(asked)[["group", "n"]].to_numpy().tolist()


PEOPLE = """status,score,label majority,0.2,0 majority,0.9,1 majority,0.4,0 majority,0.7,1
    majority,0.3,1 majority,0.6,0 minority,0.1,0 minority,0.8,1 minority,0.9, minority,0.7,"""


@pytest.mark.parametrize("in_memory", [False, True])
def test_01_a_group_called_as_a_total_keeps_its_rows(in_memory, tmp_path):
    path = written(tmp_path, "people.csv", PEOPLE)
    options = {"target": "label", "score": "score", "groups": "status"}
    report = fairbench.audit(pd.read_csv(path) if in_memory else path, **options)
    rate = report.table.query("metric == 'selection_rate' and statistic == 'value'")
    rate = rate.set_index("group")
    assert rate.loc["minority", ["value", "n"]].tolist() == [0.75, 4]


@pytest.mark.parametrize("role", ["target", "weight", "feature"])
def test_02_a_comma_that_may_mark_thousands_is_asked_by_runs_as_by_audits(role, tmp_path):
    path = written(tmp_path, "price.csv", 'sex,x,y f,"1,065",0 m,950,1 f,"1,234",1 m,870,0')
    options = {"target": {"target": "x"}, "weight": {"weight": "x"}, "feature": {}}[role]
    way_on = r"'x', row 1: '1,065' has a comma that may be a decimal one or mark thousands"
    with pytest.raises(UserError, match=way_on):
        loaded(path, **options)
    with pytest.raises(UserError, match=way_on):
        read_frame(Options(path=path, target="y", score="x", group=("sex",)))


def test_03_groups_whose_names_differ_in_signs_are_two_metrics():
    blood = ["A+"] * 10 + ["A-"] * 10
    found = fairbench.evaluate([0, 1] * 10, [1] * 10 + [0] * 10, sensitive_features={"b": blood})
    values = values_of_evaluation(found)
    rates = {name: value for name, value in values.items() if name.endswith("/selection_rate")}
    assert sorted(rates.values()) == [0, 1] and rates["b/A-/selection_rate"] == 0


def test_04_mlflow_pairs_a_series_with_rows_by_its_index():
    data = pd.DataFrame({"y": [0, 1] * 10, "d": [1] * 10 + [0] * 10})
    sex = pd.Series(["f"] * 10 + ["m"] * 10)
    test = data.sample(frac=1, random_state=0)
    given = EvaluationDataset(test, targets="y", predictions="d")
    config = {"sensitive_features": {"sex": sex}}
    said = _evaluate("classifier", given, config, None, None)
    assert values_of_evaluation(said)["sex/statistical_parity"] == 1


@pytest.mark.thorough
def test_05_the_interval_of_r2_holds_its_mean_also_below_0(tmp_path):
    noise = pd.DataFrame({"sex": ["f", "m"] * 30, "x": DRAW.normal(size=60)})
    noise.assign(y=DRAW.normal(size=60)).to_csv(tmp_path / "noise.csv", index=False)
    words = ("dataset=table", "dataset.path=noise.csv", "dataset.target=y", "method=baseline")
    asked = ("dataset.sensitive=[sex]", "tracking=none", "figures=false", "results=r")
    fairbench_command("run", *words, *asked, cwd=tmp_path)
    (r2,) = (
        Run(run_folder(tmp_path / "r"))
        .summary()
        .query("metric == 'r2' and group == ''")
        .itertuples()
    )
    assert float(r2.mean) < 0 and float(r2.lower) < float(r2.mean) < float(r2.upper)


NA = "sex,income,y f,21000,1 m,{},0 f,18500,0 m,30500,1 f,17000,0 m,26000.5,1"


def test_06_one_na_is_a_missing_number_and_other_words_are_asked(tmp_path, capsys):
    empty = loaded(written(tmp_path, "empty.csv", NA.format("")))
    na = loaded(written(tmp_path, "na.csv", NA.format("NA")))
    pd.testing.assert_frame_equal(na.features, empty.features)
    assert na.features["income"].dtype == np.float64
    assert capsys.readouterr().err == "note: na.csv: read as missing: income (NA)\n"
    for word in ("?", "-", '"$1,234.00"', "13.5%", "\u2212500", '"1,2E-01"'):
        with pytest.raises(UserError, match=r"column 'income', row 2: .* is no number"):
            loaded(written(tmp_path, "other.csv", NA.format(word)))


def test_07_numbers_of_rows_are_no_feature_and_can_be_left_out(tmp_path, capsys):
    path = written(tmp_path, "i.csv", ",x,sex,y 0,0.24,f,0 1,1.80,m,0 2,0.53,f,1 3,0.77,m,1")
    assert [*loaded(path).features] == ["x", "sex"]
    assert "'column 1' left out: it has no name, and numbers the rows" in capsys.readouterr().err
    for name in ("column 1", ""):
        assert [*loaded(path, drop=[name]).features] == ["x", "sex"]


def test_08_a_series_that_is_shorter_is_refused():
    target, sex = pd.Series([0, 1, 0, 1, 0, 1]), pd.Series(list("ffmmfm"), name="sex")
    index = [0, 0, 1, 1, 2, 2]
    for given in (target, sex.iloc[:4]), (target.set_axis(index), sex.set_axis(index).iloc[:4]):
        with pytest.raises(UserError, match=r"^sex has 4 rows, the target 6$"):
            fairbench.evaluate(given[0], given[0], sensitive_features=given[1])


def test_10_seconds_since_1970_are_as_good_a_feature_as_seconds(tmp_path):
    seconds = DRAW.uniform(0, 60, 200).round(3)
    made = pd.DataFrame({"sex": ["f", "m"] * 100, "t": seconds, "y": [0, 1] * 100})
    encoded = []
    for origin in (0, 1_700_000_000):
        path = tmp_path / f"{origin}.csv"
        made.assign(t=seconds + origin).to_csv(path, index=False)
        features = loaded(path, keep_sensitive=False).features
        encoded.append(Encoder(Encoding.STANDARD).fit(features).transform(features))
    np.testing.assert_allclose(
        encoded[0], (seconds - seconds.mean())[:, None] / seconds.std(), 1e-4
    )
    np.testing.assert_allclose(*encoded, atol=1e-4)
    huge = written(tmp_path, "huge.csv", "sex,t,y f,1,0 m,2,1 f,3,0 m,1e300,1")
    with pytest.raises(UserError, match=r"column 't' is 1e\+300 in row 3; .* leave the cell empty"):
        loaded(huge)


def test_11_whole_numbers_beside_a_gap_keep_their_digits():
    a, b = 2**53, 2**53 + 1
    target, decided = [0, 1] * 4, [0, 1, 1, 1, 0, 0, 1, 0]
    site = pl.Series("site", [a, a, a, b, b, b, None, a])
    right = [[str(a), 4], [str(b), 3], ["unknown", 1]]
    assert rows_of("selection_rate", target, decided, sensitive_features=site) == right
    report = fairbench.audit(
        pl.DataFrame({"y": target, "p": decided, "site": site}),
        target="y", prediction="p", groups="site",
    )  # fmt: skip
    found = report.table.query("metric == 'selection_rate' and group != ''")
    assert found[found["statistic"] == "value"][["group", "n"]].to_numpy().tolist() == right
    with pytest.raises(UserError, match="is the float 9007199254740992 in row 0"):
        rows_of("selection_rate", target, decided, sensitive_features=site.to_pandas())
    small = pd.Series([1, 1, 1, 2, 2, 2, None, 1], dtype="Int64")
    found = rows_of("selection_rate", target, decided, sensitive_features=small)
    assert found == [["1", 4], ["2", 3], ["unknown", 1]]


def test_14_what_is_masked_is_no_label():
    labels = np.ma.masked_array([0, 1, 1, 0, 1, 1], mask=[0, 0, 0, 0, 1, 1])
    with pytest.raises(UserError, match="target is nan in row 4, not 0 or 1"):
        fairbench.evaluate(labels, [0, 1, 1, 0, 0, 0], sensitive_features=list("aabbab"))


COUNTS = "race,people,{} White,434,{} Black,305,{} Asian,133,{} Native,0,{}"


def test_15_a_category_of_nobody_has_no_rate(tmp_path):
    reports = []
    for none in ("", "NA", "0"):
        path = written(tmp_path, "t.csv", COUNTS.format("rate", "0.74", "0.78", "0.86", none))
        reports.append(fairbench.audit(path, rates="rate", total="people", groups="race").findings)
        pd.testing.assert_frame_equal(reports[0], reports[-1])
    path = written(tmp_path, "t.csv", COUNTS.format("n", 320, 238, 115, ""))
    counted = fairbench.audit(path, selected="n", total="people", groups="race").findings
    assert counted["measure"].tolist() == reports[0]["measure"].tolist()
    path = written(tmp_path, "t.csv", COUNTS.format("rate", "0.74", "", "0.86", ""))
    with pytest.raises(UserError, match="column 'rate', row 2: it is blank"):
        fairbench.audit(path, rates="rate", total="people", groups="race")


RISK = "age,decile,decile,empty,sex,y 67,9,9,,f,1 28,3,3,,m,0 35,5,{},,f,1 41,2,2,,m,0"


def test_16_equal_columns_of_one_name_are_one_and_others_are_named(tmp_path, capsys):
    path = written(tmp_path, "risk.csv", RISK.format(5))
    assert [*loaded(path).features] == ["age", "decile", "sex"]
    said = capsys.readouterr().err
    assert "risk.csv was read as: equal columns 'decile' as one" in said
    assert "'empty' left out: every cell is empty" in said
    assert [*loaded(path, drop=["decile"]).features] == ["age", "sex"]
    assert [*loaded(path, drop=["decile.1", "empty"]).features] == ["age", "decile", "sex"]
    assert [*loaded(path, target="decile.1", task="regression").features] == ["age", "sex", "y"]
    options = Options(
        path=path, target="y", score="decile", group=("sex",), scale="rating", threshold=5
    )
    assert list(read_frame(options)["decile"]) == ["9", "3", "5", "2"]
    source = pd.DataFrame([[9, 9, "f", 1]], columns=["decile", "decile", "sex", "y"])
    assert list(read_frame(options, source=source)) == ["decile", "sex", "y"]
    differ = written(tmp_path, "differ.csv", RISK.format(6))
    assert [*loaded(differ).features] == ["age", "decile", "decile.1", "sex"]
    way_on = r"2 columns are named 'decile', and row 3 tells them apart: .* as 'decile.1'"
    with pytest.raises(UserError, match=way_on):
        read_frame(Options(path=differ, target="y", score="decile", group=("sex",)))


def test_17_thousands_of_groups_are_refused_in_a_line():
    income = pd.Series(DRAW.integers(0, 10**6, 6000), name="income")
    labels = np.arange(6000) % 2
    with pytest.raises(UserError, match=r"income has 5,\d\d\d groups, of which up to 500"):
        fairbench.evaluate(labels, labels, sensitive_features=income)


def test_20_zeros_of_either_sign_are_one_group():
    groups = np.round([-0.2, 0.2, -0.3, 0.4, 1.2, 0.9, 1.1, 0.8])
    found = rows_of("selection_rate", [0, 1] * 4, [0, 1] * 4, sensitive_features=groups)
    assert found == [["0", 4], ["1", 4]]


def test_21_runs_and_audits_read_one_number_alike(tmp_path):
    text = "sex;score;y f;5,118E-01;1 m;9,505E-01;1 f;1,204E-01;0 m;0,4;0"
    path = written(tmp_path, "de.csv", text)
    options = Options(path=path, target="y", score="score", group=("sex",))
    right = [0.5118, 0.9505, 0.1204, 0.4]
    assert loaded(path).features["score"].tolist() == right
    assert read_audit_table(options).score.tolist() == right


def test_24_a_folder_of_logs_of_inspect_is_told_the_way_that_leaves_none_out(tmp_path):
    for name, samples in (("whole", '[{"id": 1}]'), ("cancelled", "null")):
        (tmp_path / f"{name}.json").write_text(f'{{"eval": {{}}, "samples": {samples}}}')
    with pytest.raises(UserError, match=r"is a log of inspect_ai: .*samples_df, and rank that"):
        benchmark_scores(tmp_path)


def test_30_nothing_is_said_of_groups_of_which_a_tiny_one_differs(tmp_path):
    rows = [("a", d, 3000) for d in (0, 1)] + [("b", d, 3000) for d in (0, 1)] + [("c", 0, 9)]
    frame = pd.concat([pd.DataFrame({"group": [g] * n, "d": d, "y": 1}) for g, d, n in rows])
    report = fairbench.audit(
        frame, target="y", prediction="d", groups="group", favourable="1",
        fail_if="equal_opportunity>0.05",
    )  # fmt: skip
    gaps = report.findings.query("about == 'gap'")
    assert "small" not in set(gaps["verdict"])
    summary = " ".join(report.document.summary.found)
    assert "no two groups differ" not in summary and "(c and a;" in summary


def test_31_deciles_are_ratings(tmp_path, capsys):
    decile = DRAW.integers(1, 11, 600)
    again = (DRAW.random(600) < decile / 12).astype(int)
    frame = pd.DataFrame({"group": ["A", "B"] * 300, "decile": decile, "again": again})
    path = tmp_path / "ratings.csv"
    frame.to_csv(path, index=False)
    words = [path, "target=again", "score=decile", "group=group", "favourable=0"]
    asked = {"target": "again", "score": "decile", "groups": "group", "favourable": "0"}
    with pytest.raises(UserError, match=r"of ratings such as deciles give scale=rating, and as"):
        fairbench.audit(path, **asked)
    said = shown_by([*words, "scale=rating", "threshold=5"], capsys)
    assert "'decile' is read as a rating, whose high values are for '1'" in said
    assert "calibrat" not in said and "too low" not in said


@pytest.mark.parametrize("decision", ["", "approved/declined"])
def test_32_what_the_selection_decides_is_no_finding(decision, tmp_path, capsys):
    score = DRAW.random(1500)
    repaid = np.where(score > 0.4, (DRAW.random(1500) < score).astype(float), np.nan)
    loans = pd.DataFrame({"sex": ["f", "m", "m"] * 500, "score": score, "repaid": repaid})
    path = tmp_path / "loans.csv"
    loans.assign(granted=score > 0.4).to_csv(path, index=False)
    words = [path, "target=repaid", "score=score", "group=sex", "favourable=1", "threshold=0.4"]
    said = shown_by(
        [*words, "selected=granted", *[f"decision={decision}"] * bool(decision)], capsys
    )
    chosen = "approved" if decision else "selected"
    assert f"everyone who was {chosen} is predicted '1', which by itself makes all groups" in said
    assert f"of those {chosen} ('granted')" in said and "no two groups differ" not in said
    assert ("selected" in said.replace("selected=", "")) != bool(decision)


def test_unknown_and_an_empty_cell_are_one_group(tmp_path):
    sex = ["f", "m", "Unknown", ""] * 3
    path = tmp_path / "t.csv"
    pd.DataFrame({"sex": sex, "y": [0, 1, 1] * 4, "x": [1, 0] * 6}).to_csv(path, index=False)
    assert sorted(loaded(path).sensitive["sex"].unique()) == ["Unknown", "f", "m"]
    options = Options(path=path, target="y", prediction="x", group=("sex",))
    assert [*read_audit_table(options).cells.cat.categories] == ["f", "Unknown", "m"]
    found = rows_of("selection_rate", [0, 1, 1] * 4, [1, 0] * 6, sensitive_features={"sex": sex})
    assert found[0] == ["Unknown", 6]
