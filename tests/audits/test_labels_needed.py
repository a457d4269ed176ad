"""How many more labels settle a question, and which labels cannot have been given at random."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairbench
from benchmarks.measure import exact_interval
from benchmarks.plans import CERTAINTY, LEAST, MOST, MOST_OF_SEVERAL, populations, study
from fairbench.audits import labels as label_selection
from fairbench.audits.assessment import assess
from fairbench.audits.direction import RATE_OF
from fairbench.audits.kinds import document_of
from fairbench.audits.kinds.binary import audit_of
from fairbench.audits.labels import check_labels_at_random
from fairbench.audits.labels_needed import ALIKE, _other_rate, _plan_risk, _planned_labels
from fairbench.audits.labels_needed import _least_number as least_number
from fairbench.audits.question import PlanOptions
from fairbench.audits.report import document_of as page_of
from fairbench.audits.table import read_audit_table
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench.evaluation.findings import ERROR_RATE, OPEN
from fairbench.inference.gaps import GroupLimits, largest_gap
from tests.audits.tables import concluded, granted, parse, predictions, read
from tests.audits.test_kinds import classified, incomes
from tests.harness import quick

POPULATIONS = {population.name: population for population in populations()}
PAGES = {
    "2 alike, 4,000 rows": 20,
    "2 apart, 5,000 rows": 40,
    "2 alike, 10:1, 7,000 rows": 50,
    "3 attributes alike, 9,000 rows": 6,
    "5 alike, 3,000 rows": 25,
    "2 apart, 250 labels of 8,000": 20,
    "Adult's groups alike, 250 labels of 4,000": 12,
}


def assessed(labels, group, *, rows=6000, bias=0.0):
    """Return an audit of decisions alone: no posterior stands beside it, which takes its time."""
    frame = predictions(rows, labels=labels, bias=bias)
    frame = frame.assign(decision=(frame["score"] > 0.5).astype(int))
    about = ["target=label", "prediction=decision", "labelled=is_labelled", group]
    return assess(*read(frame, *about))


def needed(result):
    return {(gap.attribute, gap.metric): gap.needed for gap in result.gaps if gap.needed}


@pytest.mark.thorough
@pytest.mark.parametrize("name", quick(PAGES, [*PAGES][:1], rest=pytest.mark.slow))
def test_a_number_settles_the_question_as_often_as_it_says(name):
    """Of these pages, plans are neither surely kept too seldom nor too often."""
    _, planned, settled = study(POPULATIONS[name], PAGES[name])
    lower, upper = exact_interval(settled, planned, CERTAINTY)
    assert planned >= 20
    assert upper >= LEAST
    assert lower <= (MOST if name.startswith("2") else MOST_OF_SEVERAL)


def test_it_is_planned_at_the_risk_of_the_whole_page():
    one, both = (
        needed(assessed(250, f"group={groups}"))["sex", "accuracy_gap"][ALIKE]
        for groups in ("[sex]", "[sex,race]")
    )
    assert both > 1.2 * one


def test_a_gap_is_named_that_the_interval_does_not_exclude():
    result = assessed(400, "group=[sex,race]", bias=0.3)
    assert needed(result)
    for gap in result.gaps:
        assert gap.verdict == OPEN or not gap.needed
        assert (ALIKE in gap.needed) <= (gap.lower <= 0 <= gap.upper)
        for supposed in gap.needed.keys() - {ALIKE}:
            two, size = supposed.split(" differ by ")
            assert {*two.split(" and ")} <= {*gap.names}
            assert 0.1 <= float(size) <= max(abs(gap.lower), abs(gap.upper))


def test_what_takes_more_than_there_is_has_no_number_and_the_page_says_so():
    result = assessed(100, "group=[race]", rows=300)
    assert all(number is None for numbers in needed(result).values() for number in numbers.values())
    document = page_of(audit_of(result))
    assert any("These rows are too few for what is open" in said for said in document.summary.todo)
    assert "would settle it" not in " ".join(concluded(result).cannot)
    (table,) = (table for table in document.tables if table.columns[2].title == "supposed")
    assert {row[-1] for row in table.rows} == {">200"}


def test_the_least_number():
    assert least_number(lambda n: n / 100, 0.8, 1, 1000) in (80, 81)
    assert least_number(lambda n: n / 100, 0.8, 90, 1000) in (90, 91)
    assert least_number(lambda n: n / 100, 0.8, 1, 70) is None
    assert least_number(lambda n: 1.0, 0.8, 10, 5) is None


# A plan before there are data, against audits that are really simulated.

RISK = ERROR_RATE / len(RATE_OF)


def planned(*, no_difference=False, equally=False, **options):
    """Return how many labels a plan with these options takes."""
    return _planned_labels(PlanOptions(**options), no_difference=no_difference, equally=equally)


def shown(labels, shares, rates, gap=None, *, equally=False, repeats=4000):
    """Return how often labels that are drawn one by one show a small gap, or that there is one."""
    generator = np.random.default_rng(1)
    sizes = generator.multinomial(labels, shares, repeats)
    if equally:
        sizes = np.full((repeats, len(shares)), labels // len(shares))
    counts = generator.binomial(sizes, rates)
    if gap is not None:
        return (largest_gap(GroupLimits.of(counts, sizes, level=1 - 2 * RISK)).upper < gap).mean()
    level = 1 - RISK / (2 if len(shares) > 2 else 1)  # pairs of several are named at half of it
    return (largest_gap(GroupLimits.of(counts, sizes, level=level)).lower > 0).mean()


@pytest.mark.thorough
@pytest.mark.parametrize("equally", [False, True])
@pytest.mark.parametrize(("shares", "rate"), [((0.5, 0.5), 0.9), ((0.8, 0.15, 0.05), 0.3)])
def test_a_simulation_needs_as_many_labels_within_ten_percent(shares, rate, equally):
    plan = {"groups": shares, "rate": rate, "gap": 0.05}
    rates = np.full(len(shares), rate)
    is_smallest = np.arange(len(shares)) == np.argmin(shares)
    other = np.where(is_smallest, _other_rate(PlanOptions(**plan)), rate)
    few, alike = planned(no_difference=True, equally=equally, **plan)
    _, apart = planned(equally=equally, **plan)
    assert few < alike
    for needed, truth, gap in ((alike, rates, 0.05), (apart, other, None)):
        about = {"shares": shares, "rates": truth, "gap": gap, "equally": equally}
        assert shown(round(0.9 * needed), **about) < 0.8 < shown(round(1.1 * needed), **about)


def test_of_a_rate_about_few_people_many_more_labels_are_needed():
    plan = {"groups": (0.5, 0.5), "rate": 0.7, "gap": 0.1}
    assert planned(**plan, among=0.2)[1] == pytest.approx(5 * planned(**plan)[1], rel=0.02)

    rare = {"groups": (0.999999, 0.000001), "rate": 0.5, "gap": 0.001}
    assert planned(no_difference=True, **rare)[1] is None  # too many
    # The risk is that of every attribute and every two.
    risks = [_plan_risk(PlanOptions(attributes=number)) for number in (1, 3)]
    assert risks == pytest.approx([RISK, RISK / 6])


REFUSED = [
    ({"groups": (1.0,)}, "needs the shares of two groups or more"),
    ({"groups": (0.5, 0.6)}, "add up to 1, these to 1.1"),
    ({"groups": (1.0, 0.0)}, "shares are above 0"),
    ({"groups": (0.5, 0.5), "rate": 1.2}, "rate is 1.2; it must be between 0 and 1"),
    ({"groups": (0.5, 0.5), "gap": 0.0}, "gap is 0.0; it must be between 0 and 1"),
    ({"groups": (0.5, 0.5), "among": 0.0}, "among is 0.0"),
    ({"groups": (0.5, 0.5), "attributes": 0}, "attributes is 0"),
    ({"groups": (0.5, 0.5), "rate": 0.5, "gap": 0.6}, "no rate differs from 0.5 by 0.6"),
]


@pytest.mark.parametrize(("given", "sentence"), REFUSED)
def test_what_cannot_be_is_refused(given, sentence):
    with pytest.raises(UserError, match=sentence):
        PlanOptions(**given)


def test_it_is_printed_and_a_file_of_that_name_is_audited_by_its_path(said_by, refused):
    printed = said_by("audit", "plan", "groups=[0.9,0.1]", "rate=0.8", "gap=0.1")
    assert "groups of 90 % : 10 %, a rate of 0.8 and a gap of 0.1." in printed
    refused("audit", "./plan", message="plan is not a file")


# Labels that cannot have been given at random are refused; random ones are not.


WORDS = ["target=label", "score=score", "group=sex"]


@pytest.mark.parametrize("group", [None, "Male"])
def test_labels_of_the_selected_alone_are_refused_with_what_to_write(group):
    frame = predictions(800).assign(granted=lambda frame: frame["score"] > 0.5)
    kept = frame["granted"] | (group is not None) & (frame["sex"] != group)
    with pytest.raises(UserError, match="not chosen for labelling at random") as refusal:
        read(frame.assign(labelled=kept), *WORDS, "labelled=labelled")
    text = str(refusal.value)
    assert "\n" not in text and "selected=COLUMN" in text
    assert not group or f"in {group}, 0 of the " in text
    assert 0 < len(read(frame, *WORDS, "selected=granted")[0].known) < len(frame)


def rows_of_every_kind(rows=2000, *, seed=0):
    """Return predictions of two classes, of three and of numbers, all with labels."""
    draw, frame = np.random.default_rng(seed), predictions(rows)
    of_classes, of_numbers = classified(rows), incomes(rows)
    return frame.assign(
        other=np.clip(frame["score"] + draw.normal(0, 0.1, rows), 0, 1),
        place=draw.integers(60, size=rows).astype(str),
        men=frame["sex"].map({"Male": 0.8, "Female": 0.3}),
        predicted=of_classes["predicted"],
        animal=of_classes["label"],
        guess=of_numbers["predicted"],
        income=of_numbers["income"],
        household=draw.integers(rows // 3, size=rows),
    )


TWO = "[0-9,]+ of the [0-9,]+ rows not selected have a label, and [0-9,]+ of the .* rows selected"
# Of each kind the options and the column of predictions, and a sentence on the largest alone.
KINDS = [
    ("target=label score=score group=[sex,race]", "score", f": in .* x .*, .*{TWO}"),
    ("target=label score=score against=other group=sex", "score",
     f": in Male, {TWO}.*Leave target= out to audit decisions alone"),
    ("target=label score=score against=other group=sex", "other", TWO),
    ("target=label score=score group=[place,race]", "score",
     ": over all groups, .* of the .* rows not selected have a label, where .* about .* would"),
    ("target=label score=score proxy=men", "score", f": {TWO}"),
    ("target=animal prediction=predicted score=score group=sex", "predicted",
     r": in Male, ([0-9]+) of the \1 rows predicted 'emu' have a label, and 0 of the"),
    ("target=animal prediction=predicted score=score", "predicted",
     r": ([0-9]+) of the \1 rows predicted 'emu'.*name the column of predicted classes in group="),
    ("target=animal prediction=predicted score=score group=sex", "score",
     ": in .*ale, 'score' is distributed otherwise in rows with a label"),
    ("target=income prediction=guess group=sex", "guess",
     r": in Male, 'guess' is distributed .* \(means [0-9.]+ and [0-9.]+\).*weight=COLUMN"),
    ("target=income prediction=guess group=[sex,race] cluster=household", "guess",
     ": in .* x .*, 'guess' is distributed otherwise"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "column", "sentence"), KINDS)
def test_every_kind_refuses_labels_of_the_largest_predictions_alone(words, column, sentence):
    frame = rows_of_every_kind()
    kept = frame[column] > frame[column].sort_values().iloc[len(frame) // 3]
    options = parse(["predictions.csv", *words.split(), "labelled=labelled"])
    with pytest.raises(UserError, match=f"not chosen for labelling at random.*{sentence}"):
        document_of(options, frame.assign(labelled=kept).astype(str))


@pytest.mark.parametrize("group", ["[sex,race]", "[place,race]"])
@pytest.mark.parametrize("column", ["score", "decided"])
def test_small_groups_are_compared_together(group, column):
    """A handful of rows of a group cannot refute by themselves that labels are random."""
    draw = np.random.default_rng(6)
    frame = rows_of_every_kind(80 if group == "[sex,race]" else 400)
    frame["decided"] = draw.integers(2, size=len(frame))
    kept = frame[column] > 0.4
    words = f"target=label score=score prediction=decided group={group} labelled=labelled"
    what = {"score": "with 'score' above the median of their group", "decided": "not selected"}
    with pytest.raises(UserError, match=f"over all groups, .* rows {what[column]} have a label"):
        options = parse(["p.csv", *words.split()])
        read_audit_table(options, frame.assign(labelled=kept).astype(str), many=True)


def test_a_gate_of_decisions_alone_takes_labels_granted():
    asked = {"target": "repaid", "score": "score", "groups": "sex", "favourable": "1"}
    gate = fairbench.gate(granted(), fail_if="impact_ratio<0.1", **asked)
    assert gate.outcome == "passes"
    with pytest.raises(UserError, match="not chosen for labelling at random"):
        fairbench.gate(granted(), fail_if="sex:equal_opportunity>0.9", **asked)


@pytest.mark.parametrize("rules", ["lending", "four-fifths", "ll144"])
def test_dossiers_of_decisions_alone_take_labels_of_the_selected(rules, tmp_path):
    granted().to_csv(tmp_path / "loans.csv", index=False)
    groups = ["sex=sex", "race=race"] if rules == "ll144" else ["group=[sex,race]"]
    words = ["target=repaid", "prediction=granted", "favourable=1", *groups]
    assert main(["dossier", rules, str(tmp_path / "loans.csv"), *words]) == 0


def refused(is_labelled, cells, classes=None, values=None, **more):
    """Return why labels are not of rows at random; nothing where they may be."""
    about = {"advice": "", "classes": classes, "values": values, **more}
    try:
        check_labels_at_random("p.csv", is_labelled, cells.astype("category"), **about)
    except UserError as refusal:
        return str(refusal)
    return ""


def test_a_single_label_is_never_refused():
    """Not even that of the highest score: one row in twenty has it."""
    cells, rows = pd.Series(["all"] * 20), np.arange(20)
    for row in rows:
        assert not refused(rows == row, cells, values={"'score'": rows / 20})


@pytest.mark.parametrize("level", [1e9, 1e-3])  # at the first, every p-value refutes
@pytest.mark.parametrize("asked", [["classes", "values"], ["classes"], ["values"]], ids=str)
def test_merged_rows_are_answered_like_all_rows(asked, level, monkeypatch):
    monkeypatch.setattr(label_selection, "_LEVEL", level)
    draw = np.random.default_rng(4)
    code, score = draw.integers(4, size=3000), draw.integers(8, size=3000) / 8
    rows = pd.DataFrame({"cell": draw.choice([*"aabc"], 3000), "code": code, "score": score})
    rows["labelled"] = draw.random(3000) < 0.2 + 0.08 * score
    merged = rows.value_counts().rename("times").reset_index()

    def answer(table, **more):
        of_rows = {name: column.to_numpy() for name, column in table.items()}
        told = {"classes": (of_rows["code"], [*"wxyz"]), "values": {"'score'": of_rows["score"]}}
        told = {name: told[name] for name in asked}
        return refused(of_rows["labelled"], table["cell"], **told, times=of_rows.get("times"))

    assert len(merged) < 200 and answer(merged) == answer(rows)
    assert level < 1 or ("have a label" if "classes" in asked else "distributed") in answer(rows)


@pytest.fixture
def as_rare_as_said(monkeypatch):
    """Return what checks that, with the level at a fiftieth, no more files are refused."""
    monkeypatch.setattr(label_selection, "_LEVEL", 0.02)

    def check(files):
        wrong = [bool(refused(is_labelled, cells, **told)) for is_labelled, cells, told in files]
        assert sum(wrong) <= stats.binom.ppf(0.999, len(wrong), 0.02)

    return check


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("groups", [1, 3, 40])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.97])
def test_a_refusal_of_random_labels_is_as_rare_as_said(classes, groups, share, as_rare_as_said):
    draw = np.random.default_rng(2)
    cells = pd.Series(np.floor(groups * draw.random(300) ** 2), dtype="category")
    score = draw.random(300)
    codes = (score * classes).astype(np.int64)
    told = {"classes": (codes, list("abcde")[:classes]), "values": {"'score'": score}}
    as_rare_as_said((draw.random(300) < share, cells, told) for _ in range(400))


@pytest.mark.thorough
def test_random_households_that_are_labelled_together_are_taken(as_rare_as_said):
    """Rows of a household are alike, so that they are not as many labels as they seem."""
    draw, household = np.random.default_rng(5), np.repeat(np.arange(40), 10)

    def file():
        guess = draw.normal(size=40)[household] + draw.normal(0, 0.01, 400)
        told = {"values": {"'guess'": guess}, "clusters": pd.Series(household)}
        return (draw.random(40) < 0.5)[household], pd.Series(draw.choice(["a", "b"], 400)), told

    as_rare_as_said(file() for _ in range(200))
