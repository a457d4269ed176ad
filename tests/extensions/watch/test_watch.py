"""A watch: a file that grows, one each week, rows that come twice, and how seldom it errs."""

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import binom

from benchmarks.watch import POPULATIONS, delay, false_alarms, streamed
from fairbench.audits.sentences import concluded
from fairbench.core.errors import UserError
from fairbench.core.files import sealed_json
from fairbench.evaluation.findings import Finding
from fairbench_watch import alarms, sequences
from fairbench_watch.alarms import WatchFile, beyond_chance, risks
from fairbench_watch.page import gaps_now, repeats_sentence, watch_document
from fairbench_watch.sequences import Pair, Sums, log_evidence, log_evidence_above
from fairbench_watch.state import WatchOptions, drawn
from tests.audits.tables import predictions

USUAL = ("target=label", "score=score", "group=sex")
PARITY = {"metrics": ("statistical_parity",)}


def rows(number, *, seed=0, against=0.0, digits=4):
    """Return people by sex; women's scores, and so decisions, are lower by `against`."""
    frame = predictions(number, seed=seed)[["sex", "score", "label"]]
    lower = np.clip(frame["score"] - against, 0.001, 1)
    score = frame["score"].where(frame["sex"] == "Male", lower).round(digits)
    person = [f"p{seed}-{row}" for row in range(number)]
    return frame.assign(score=score, label=frame["label"].astype(str), person=person)


def exact(number, *, seed=0):
    """Return people whose scores tell their rows apart."""
    return rows(number, seed=seed, digits=16)


@pytest.fixture
def look(tmp_path, state, said_by, refused):
    """Return a function that writes a table and looks at it: exit status and what was printed."""

    def once(frame, *words, name="p.csv", status=0):
        frame.to_csv(tmp_path / name, index=False)
        words = "watch", tmp_path / name, f"state={state}", f"out={tmp_path / 'page'}", *words
        return refused(*words) if status == 2 else said_by(*words, status=status)

    return once


@pytest.fixture
def state(tmp_path):
    return tmp_path / "s.json"


def content(state):
    return json.loads(state.read_text())


def counts_after(look, state, frame):
    """Return the counts of a watch that sees all rows and labels at once."""
    state.unlink()
    look(frame, *USUAL)
    return content(state)["marks"][-1]["counts"]


@pytest.mark.thorough
def test_a_file_that_grows_is_counted_on(look, state, tmp_path):
    frame = rows(900)
    assert "Watched: 600 rows, 600 of them with a label" in look(frame[:600], *USUAL)
    assert "nothing is new" in look(frame[:600], *USUAL)
    assert "300 rows and 300 labels are new in p.csv" in look(frame)
    assert [mark["row"] for mark in content(state)["marks"]] == [600, 900]
    assert json.loads((tmp_path / "page" / "watch.json").read_text())["rows"] == 900
    assert (tmp_path / "page" / "watch.html").read_text().count("<svg") >= 5
    assert content(state)["marks"][-1]["counts"] == counts_after(look, state, frame)
    later = pd.concat([frame, rows(20, seed=1).assign(sex="Other")])
    assert "not watched: sex: Other (20 rows)" in look(later)


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
    assert (document.verdict.can, document.verdict.cannot) == concluded(findings)
    assert document.verdict.can


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
    assert content(state)["marks"][-1]["counts"] == counts_after(look, state, frame)


@pytest.mark.thorough
def test_a_new_file_each_week(look, state):
    weeks = [rows(300, seed=i).assign(week=f"week {i}") for i in (8, 9, 10, 11)]
    look(weeks[0], *USUAL, "time=week", name="a.csv")
    look(weeks[1], name="b.csv")
    look(pd.concat([weeks[1], weeks[3], weeks[2]]), name="c.csv")  # two at once, in any order
    seen = [mark["period"] for mark in content(state)["marks"]]
    assert seen == [f"week {week}" for week in (8, 9, 10, 11)]
    more = pd.concat([weeks[3], rows(20, seed=99).assign(week="week 11")])
    assert "20 rows" in look(more, name="d.csv")
    sentence = look(rows(5).assign(week="week 7"), name="e.csv", status=2)
    assert "period 'week 7' has 5 rows that are new, and 'week 11' was looked at" in sentence
    few = look(weeks[1][:100], name="f.csv", status=2)
    assert "period 'week 9' has 100 rows, and 300 were seen" in few


NO_ORDER = {
    "Jan": "Feb",
    "2024-Jan": "2024-Feb",
    "Q4 2024": "Q1 2025",
    "12/2024": "01/2025",
    "31.01.2024": "01.02.2024",
    "Week 8": "week 9",
}
ORDER = {
    "9": "10",
    "2023-W52": "2024-W01",
    "2023-Q4": "2024-Q1",
    "2023-2024": "2024-2025",
    "Q1 2024": "Q2 2024",
    "run 3 2024": "run 4 2024",
}


@pytest.mark.parametrize(("first", "last"), [*ORDER.items(), *NO_ORDER.items()])
def test_periods_are_ordered_by_the_numbers_in_their_names_or_refused(first, last, look, state):
    words = rows(300).assign(when=[last] * 150 + [first] * 150), *USUAL, "time=when"
    if first in ORDER:
        look(*words)
        assert [mark["period"] for mark in content(state)["marks"]] == [first, last]
    else:
        said = "cannot be put in order: write numbers, or 2024-01, 2024-W05"
        assert said in look(*words, status=2) and not state.exists()


@pytest.mark.parametrize("spellings", [("1.0", "0.0", "1", "0"), ("1", "0", "1.0", "0.0")])
def test_groups_are_one_as_whole_numbers_with_and_without_a_point(spellings, look, tmp_path):
    words = (*USUAL[:2], "group=[sex,race,sex x race]", "time=week")
    for week, names in enumerate((spellings[:2], spellings[2:])):
        frame = rows(600, seed=week).assign(race=["A", "B"] * 300, week=week)
        sexes = dict(zip(("Male", "Female"), names, strict=True))
        look(frame.assign(sex=frame["sex"].map(sexes)), *words, name=f"{week}.csv")
    rates = pd.DataFrame(json.loads((tmp_path / "page" / "watch.json").read_text())["rates"])
    counted = rates[rates["metric"] == "statistical_parity"].groupby("attribute")["rows"].sum()
    assert counted.to_dict() == dict.fromkeys(("sex", "race", "sex x race"), 1200)


OTHER = {"0": "1", "1": "0"}
OTHER_FILES = {
    "shrank": (lambda seen: seen[:299], "has 299 rows, and 300 were seen"),
    "reordered": (lambda seen: seen[::-1], "rows 1 to 300 are not those that were seen"),
    "relabelled": (lambda seen: pd.concat([seen[:5], seen[5:].replace(OTHER)]), "label of row 6"),
    "unlabelled": (lambda seen: seen.assign(label=""), "the label of row 1 was"),
    "other score": (lambda seen: seen.assign(score=0.5), "are not those that were seen"),
    "row in between": (lambda seen: pd.concat([seen[:1], seen]), "are not those that were seen"),
    "third label": (lambda seen: pd.concat([seen, seen.assign(label="2")]), "row 301: '2'"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("edit", "sentence"), OTHER_FILES.values(), ids=OTHER_FILES)
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


REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())


@pytest.mark.parametrize(("words", "sentence"), REFUSED.items())
def test_what_cannot_be_watched_is_refused(words, sentence, look, state):
    assert sentence in look(rows(50).assign(one="x", blank=""), *words.split(), status=2)
    assert not state.exists()


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
    label = pd.Series(np.where(frame["label"] == "1", names[1], names[0]))
    named = frame.assign(label=label, said=np.where(frame["score"] > 0.3, said[1], said[0]))
    only = named.assign(label=label.where(label == names[1], ""))
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
    assert len(groups["sex x race"]) == 6 and "Female x Black" in groups["sex x race"]
    assert "Male x 30 to under 50" in groups["sex x age"]
    counts = content(state)["marks"][-1]["counts"]
    whole, parts = (np.array(counts[name]).sum(axis=0) for name in ("sex", "sex x race"))
    np.testing.assert_allclose(whole, parts)


@pytest.mark.thorough
def test_scores_may_be_percents(look, state):
    frame, counts = rows(900), []
    percents = frame.assign(score=100 * frame["score"])
    assert "give scale=percent" in look(percents[:600], *USUAL, status=2)
    for scale, table in (("percent", percents), ("probability", frame)):
        look(table[:600], *USUAL, f"scale={scale}")
        look(table)
        stored = content(state)
        assert stored["options"]["scale"] == scale
        counts.append([mark["counts"]["sex"] for mark in stored["marks"]])
        state.unlink()
    np.testing.assert_allclose(*counts, atol=1e-9)


@pytest.fixture
def watch(tmp_path):
    """Return a function that writes a table and looks at it, with or without identifiers."""

    def once(table, name="s", **chosen):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        options = {"group": ("sex",), "target": "label", "score": "score", **chosen}
        file = WatchFile(tmp_path / f"{name}.json")
        alarms.look(file, WatchOptions(path=tmp_path / f"{name}.csv", **options), set())
        return file.read()

    return once


def counts(state):
    return np.array(state.marks[-1].counts["sex"]).round(9).tolist()


@pytest.mark.thorough
@pytest.mark.parametrize("chosen", [{"id": "person"}, {}], ids=["identifiers", "alike"])
@pytest.mark.parametrize("order", ["adjacent", "again", "shuffled"])
def test_rows_that_come_twice_are_counted_once(watch, chosen, order):
    table = exact(400)
    places = {
        "adjacent": np.repeat(np.arange(400), 2),
        "again": np.tile(np.arange(400), 2),
        "shuffled": np.random.default_rng(0).permutation(np.repeat(np.arange(400), 2)),
    }[order]
    whole = watch(table, "whole", **chosen)
    doubled = watch(table.iloc[places], "doubled", **chosen)
    assert whole.repeats == 0
    assert (doubled.repeats, doubled.rows) == (400, 800)
    assert counts(doubled) == counts(whole)
    assert doubled.marks[-1].labels == 400
    plain = repeats_sentence(watch(table, "plain"))
    assert "no more rows are alike than chance brings about" in plain
    assert "Repeats: 400 rows" in repeats_sentence(doubled)


def test_repeats_of_a_later_look_are_no_news(watch):
    table = exact(300)
    first = watch(table, id="person")
    again = watch(pd.concat([table, table]), id="person")
    assert (again.repeats, again.rows, again.marks) == (300, 600, first.marks)
    more = watch(pd.concat([table, table, exact(50, seed=1)]), id="person")
    assert (more.repeats, more.marks[-1].row, more.marks[-1].labels) == (300, 650, 350)


@pytest.mark.thorough
@pytest.mark.parametrize("chosen", [{"id": "person"}, {}], ids=["identifiers", "alike"])
def test_the_label_of_a_repeat_counts_where_the_first_had_none(watch, chosen):
    table = exact(300).astype({"label": str})
    early = table.assign(label="")
    watch(early, **chosen)
    state = watch(pd.concat([early, table]), **chosen)
    assert state.marks[-1].labels == 300
    late = watch(pd.concat([table, table]), **chosen)
    assert counts(late) == counts(state) == counts(watch(table, "whole", **chosen))


def test_people_who_are_alike_by_chance_are_all_counted(watch):
    table = exact(1500)
    state = watch(table.assign(score=table["score"].round(2)))
    assert (state.repeats, state.once) == (0, False)
    assert "taken to be of different people" in repeats_sentence(state)


DAMAGES = {
    "its schema is 9": lambda content: {"schema": 9},
    "colour": lambda content: {"options": {"colour": "red", "path": ""}},
    "another shape": lambda content: {"periods": [{"name": "", "parts": [], "labels": "01"}]},
    "of another shape": lambda content: {"seen": content["seen"][:-3]},
    "or is damaged": lambda content: '{"schema": 1',
}


@pytest.mark.thorough
@pytest.mark.parametrize("sentence", DAMAGES)
def test_a_file_that_is_no_state_is_refused(sentence, watch, state):
    watch(exact(100))
    content = json.loads(state.read_text())
    damaged = DAMAGES[sentence](content)
    text = damaged if isinstance(damaged, str) else sealed_json(content | damaged)
    state.write_text(text)
    with pytest.raises(UserError, match=sentence):
        WatchFile(state).read()


# Rows that are alike by chance are not taken for repeats, nor repeats for chance.


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [30, 1000, 30_000, 10**7])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_chance_is_not_taken_for_repeats_and_repeats_not_for_chance(kinds, spread):
    """Looked at after each of 60 batches, of kinds of rows that are alike or unlike in number."""
    draw, result = np.random.default_rng(kinds), 0
    for _ in range(5):
        chance = np.exp(spread * draw.standard_normal(kinds))
        rows = draw.choice(kinds, 3000, p=chance / chance.sum())
        result += any(
            beyond_chance(np.unique(rows[:stop], return_counts=True)[1])
            for stop in range(50, 3001, 50)
        )
        if kinds >= 1000 and not spread:
            assert beyond_chance(np.unique(np.tile(rows[:1000], 2), return_counts=True)[1])
    assert result <= 1


def test_what_may_go_wrong_adds_up_to_five_percent():
    of_gap, of_scores = risks(7, 4)
    assert 7 * of_gap + 4 * of_scores == pytest.approx(0.05)
    assert 7 * risks(7, 0)[0] == pytest.approx(0.05)
    shares = 2 / np.exp(sequences.log_evidence_needed(1.0, np.arange(1000)))
    assert shares[0] == pytest.approx(sequences.FROM_START)
    assert shares.sum() == pytest.approx(1, abs=1e-3)
    assert shares.sum() < 1


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("watches", "most", "size"),
    [
        pytest.param(10, 2, {"rows": 8000}, marks=pytest.mark.thorough),
        # 3 are expected at the most, and over 6 with a probability of under 0.04.
        pytest.param(60, 6, {}, marks=pytest.mark.slow),
    ],
)
def test_at_most_five_percent_of_watches_ever_give_a_false_alarm(watches, most, size):
    """Three gaps of 0.05 to the hair and four scores, looked at after each row, of 100,000."""
    assert sum(alarms > 0 for alarms in false_alarms(watches, **size)) <= most


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [1, 5, 10])
@pytest.mark.parametrize(("rates", "share", "epsilon"), POPULATIONS)
def test_a_gap_is_found_within_half_more_rows_than_a_fixed_test_needs(rates, share, epsilon, gaps):
    """The fixed test: two-sided 5 %, power 80 %, its level shared between as many gaps."""
    mean, said, fixed = delay(rates, share, epsilon, gaps, 200)
    assert mean <= 1.5 * fixed
    assert said == pytest.approx(mean, rel=0.2)


@pytest.mark.thorough
def test_it_does_not_matter_when_is_looked(watch):
    """The alarm about all rows so far is at the same row after one look as after thirty."""
    table = exact(1500)
    table["score"] = np.where(table["sex"] == "Female", table["score"] / 2, table["score"])
    once = watch(table, "once", **PARITY)
    for stop in range(750, 1501, 50):
        often = watch(table[:stop], "often", **PARITY)
    first = [[e for e in state.alarms if e.kind == "passed"][0] for state in (once, often)]
    assert first[0].since == first[1].since == 0
    assert abs(first[0].row - first[1].row) < 20  # the first group's share is that of a look
    assert json.dumps(once.marks[-1].counts) == json.dumps(often.marks[-1].counts)


@pytest.mark.thorough
def test_limits_are_computed_where_charts_show_them(watch):
    """A long watch has many marks, and charts of at most 100 and the last."""
    table = exact(2000).assign(week=np.arange(2000) // 4)
    marks, later = (
        watch(table.head(number), "weeks", time="week", **PARITY).marks for number in (1800, 2000)
    )
    kept = {mark.row: mark.limits for mark in marks if mark.limits}
    assert len(marks) == 450
    assert [*kept] == [mark.row for mark in drawn(marks)]
    assert 50 < len(kept) <= 101
    assert kept.items() <= {mark.row: mark.limits for mark in later}.items()
    assert all(mark.limits for mark in drawn(later))


def test_how_late_an_alarm_may_be_shrinks_with_fewer_gaps(watch):
    every, one = (gaps_now(watch(exact(1500), **how))[0] for how in ({}, {"name": "one", **PARITY}))
    assert one["first"] < every["first"] < every["next"] < np.inf


def test_a_gap_that_cannot_grow_is_never_found(watch):
    """Decisions that differ as far as they can: no rate is 0.05 further away."""
    table = exact(400).assign(yes=lambda rows: (rows["sex"] == "Male").astype(int))
    (gap,) = gaps_now(watch(table, target="", score="", prediction="yes"))
    assert (abs(gap["value"]), gap["change"]) == (1.0, np.inf)


# Evidence about gaps and means: fair against every claim that is true, fast where it is not.


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [(1, 1), (5, 40), (30, 30), (60, 7)])
@pytest.mark.parametrize("gap", [-0.3, 0.0, 0.05, 0.4])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_evidence_is_at_most_1_on_average_if_the_claim_is_true(rows, gap, share):
    """By enumeration: the mean over all outcomes, at every height of both rates."""
    first, second = np.meshgrid(*(np.arange(size + 1) for size in rows), indexing="ij")
    evidence = np.exp(log_evidence(Pair(first, rows[0], second, rows[1], share), gap))
    for height in np.linspace(max(0, -gap), min(1, 1 - gap), 23):
        for below in (0, 0.07):  # the claim holds with room to spare, too
            other = max(height + gap - below, 0)
            chance = binom.pmf(first, rows[0], height) * binom.pmf(second, rows[1], other)
            assert (chance * evidence).sum() <= 1


@pytest.mark.thorough
def test_evidence_is_the_least_of_any_height(pairs):
    x, n, y, m, _ = pairs
    ahead = y / np.maximum(m, 1) - x / np.maximum(n, 1)
    gap = np.clip(ahead - np.random.default_rng(0).uniform(0, 0.2, 200), -0.9, 0.9)
    lowest, highest = np.maximum(0, -gap)[:, None], np.minimum(1, 1 - gap)[:, None]
    heights = lowest + (highest - lowest) * np.sin(np.linspace(0, np.pi / 2, 4001)) ** 2
    heights = np.clip(heights, 1e-12, 1 - 1e-12)
    least = sequences._log_winnings(pairs.flat(), gap[:, None], heights).min(axis=1)
    result = log_evidence(pairs, gap)
    assert (near := np.abs(result - 5) < 10).sum() > 30
    assert (result <= least)[near].all()


def test_the_mirror_image_is_the_same_and_of_no_rows_the_limits_are_the_ends():
    x, n, y, m = np.array([[3, 30, 300], [10, 100, 900], [9, 70, 700], [20, 90, 1000]])
    pair, failures = Pair(x, n, y, m, 0.3), Pair(n - x, n, m - y, m, 0.3)
    there, back = pair.limits(4.0), pair.swapped().limits(4.0)
    assert np.allclose(there.lower, -back.upper)
    assert np.allclose(there.value, -back.value) and there.value[1] == pytest.approx(70 / 90 - 0.3)
    assert np.allclose(failures.limits(4.0).upper, -there.lower, atol=1e-4)
    empty = Pair(0, 0, 0, 0, 0.5).limits(4.0)
    assert np.isnan(empty.value) and (empty.lower, empty.upper) == (-1, 1)


@pytest.fixture
def pairs():
    """Return counts of 200 pairs of groups, large and small, many of them empty."""
    draw = np.random.default_rng(1)
    sizes = np.exp(draw.uniform(-1, 12, (2, 200))).astype(int)
    rate = draw.beta(0.7, 0.7, 200)
    other = np.clip(rate + draw.normal(0, 0.1, 200), 0, 1)
    successes = draw.binomial(sizes, [rate, other])
    return Pair(successes[0], sizes[0], successes[1], sizes[1], draw.uniform(0.1, 0.9, 200))


def test_limits_are_those_of_halving_with_a_fraction_of_the_evidence(pairs, monkeypatch):
    """Twenty halvings either side, which end within 2e-6, take 40 evidences a pair."""
    usual, computed = sequences.log_evidence, []
    rates = [x / np.maximum(n, 1) for x, n in (pairs[:2], pairs[2:4])]
    defined = np.minimum(pairs.first_size, pairs.second_size) > 0
    low, high = np.full(200, -1.0), np.where(defined, rates[1] - rates[0], 0)
    for _ in range(20):
        middle = (low + high) / 2
        excluded = usual(pairs, middle) >= 9
        low, high = np.where(excluded, middle, low), np.where(excluded, high, middle)

    def counted(pair, gap):
        computed.append(np.size(gap))
        return usual(pair, gap)

    monkeypatch.setattr(sequences, "log_evidence", counted)
    limits = pairs.limits(9.0)
    np.testing.assert_allclose(limits.lower[defined], low[defined], atol=2e-6)
    assert 0 < sum(computed) <= 20 * 200
    within = pairs.within_limits(9.0)
    assert (within[0] >= limits.lower).all()
    assert (within[1] <= limits.upper).all()


def test_what_may_be_outside_has_all_that_is_outside(pairs):
    for needed, bound in itertools.product((2.0, 9.0), (0.0, 0.02, 0.2)):
        ends = np.full(200, -bound), np.full(200, bound), np.full(200, needed)
        outside, may_be = pairs.outside(*ends), pairs.may_be_outside(*ends)
        assert outside.any() or bound == 0.2
        assert not (outside & ~may_be).any()
    draw = np.random.default_rng(2)
    size, mean = draw.integers(1, 3000, 300), draw.normal(0, 0.2, 300)
    sums = Sums(size, size * mean, size * np.clip(mean**2 + draw.uniform(0, 0.3, 300), 0, 1))
    ends = np.full(300, -0.05), np.full(300, 0.05), np.full(300, 5.0)
    outside = sums.outside(*ends)
    assert 0 < outside.sum() < 300
    assert not (outside & ~sums.may_be_outside(*ends)).any()


def test_the_first_look_is_the_first_of_all_looks():
    pair = streamed(np.random.default_rng(3), (0.3, 0.5), 0.7, 1500)
    every = log_evidence(pair, 0.05)
    assert sequences.first_beyond(pair, 0.05, 6.0) == int((every >= 6).argmax()) > 0
    assert sequences.first_beyond(pair, 0.05, 1000.0) is None


def test_what_is_never_found_takes_forever():
    assert sequences.rows_until_beyond(0.3, 0.34, 0.5, 0.05, 4.0) == np.inf
    assert sequences.rows_until_beyond(0.3, 0.9, 0.5, 0.05, 4.0) < 60


@pytest.mark.parametrize(
    ("values", "chances"),
    [([-1, 1], [0.5, 0.5]), ([-0.2, 0.8], [0.8, 0.2]), ([-0.9, 0.1], [0.1, 0.9])],
)
def test_evidence_about_a_mean_is_at_most_1_on_average_if_the_claim_is_true(values, chances):
    """By enumeration of eight values."""
    values, chances, average = np.array(values), np.array(chances), 0.0
    for kinds in itertools.product(range(2), repeat=8):
        x, chance = values[[*kinds]], chances[[*kinds]].prod()
        sums = Sums(8, x.sum(), (x**2).sum())
        average += chance * np.exp(log_evidence_above(sums, values @ chances))
    assert average <= 1


def test_the_interval_of_a_mean_narrows_as_a_fixed_one_does():
    n = np.array([100, 10_000, 1_000_000])
    limits = Sums(n, 0.1 * n, 0.2 * n).limits(np.log(40))
    assert np.allclose(limits.value, 0.1)
    fixed = 1.96 * np.sqrt(0.19 / n)
    assert ((limits.upper - limits.lower) / 2 < 2.4 * fixed).all()
