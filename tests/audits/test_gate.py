"""Gates of files and tables: policies, labels that are missing, what is refused, and watches."""

import numpy as np
import pytest

import fairbench
from fairbench.audits.assessment import assess
from fairbench.audits.calls import policy_of
from fairbench.audits.direction import RATE_OF
from fairbench.audits.question import GatedOptions, Options
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from tests.audits.tables import decided, predictions, read, written

RATIO = "impact_ratio<0.8"


def judge(frame, *conditions, **options):
    return fairbench.gate(
        frame, prediction="hired", groups="sex", fail_if=list(conditions or [RATIO]), **options
    )


def test_what_needs_labels_is_refused_without_a_column_and_open_without_labels():
    frame = decided(2000, 0.5, 0.5)
    with pytest.raises(UserError, match="accuracy<0.2 needs labels.*target="):
        judge(frame, "accuracy<0.2")
    scored = frame.assign(score=np.random.default_rng(1).random(len(frame)).round(3))
    none = scored.assign(label="")
    gate = judge(none, "accuracy<0.2", "selection_rate>0.9", target="label", score="score")
    assert [one.outcome for one in gate.statements] == ["open", "passes"]
    assert gate.exit_status == 3 and "there are no labels" in gate.line


def test_of_few_labels_nothing_is_cleared_and_of_more_it_is():
    frame = predictions(4000, labels=3000)
    frame = frame.assign(label=frame["label"].where(frame["is_labelled"], np.nan))
    given = {"target": "label", "score": "score", "group": "sex", "fail_if": "accuracy<0.3"}
    assert fairbench.gate(frame, **given).outcome == "passes"
    few = fairbench.gate(frame.assign(label=frame["label"].where(frame.index < 40)), **given)
    assert few.outcome == "open" and "under 30 labels in" in few.line
    of_men = frame.assign(label=frame["label"].mask(frame["sex"] == "Female"))
    given["fail_if"] = "equal_opportunity>0.9"
    assert fairbench.gate(of_men, **given).outcome == "open"


def test_impact_ratios_are_of_the_good_decision():
    """Everybody but few is refused: the ratio of refusals is near 1, that of the hired is not."""
    frame = decided(8000, 0.1, 0.05)
    frame["outcome"] = 1 - frame["hired"]
    given = {"prediction": "outcome", "group": "sex", "fail_if": RATIO}
    assert fairbench.gate(frame, favourable="1", **given).outcome == "passes"
    assert fairbench.gate(frame, favourable="0", **given).outcome == "fails"


def test_kinds_without_gates_and_options_that_are_none_are_refused_in_a_line():
    frame = decided(300, 0.5, 0.5).assign(three=[*"xyz"] * 100, said=[*"yzx"] * 100)
    for options, why in (
        ({"target": "three", "prediction": "said", "group": "sex"}, "does not apply to an audit"),
        ({"prediction": "hired"}, "a gate compares groups"),
        ({"prediction": "hired", "group": "sex", "interval": "dirichlet"}, "repeated samples"),
        ({"prediction": "hired", "group": "sex", "require": "point"}, "valid: pass, verdict"),
        ({"prediction": "hired", "grop": "sex"}, "did you mean group"),
    ):
        with pytest.raises(UserError, match=why):
            fairbench.gate(frame, fail_if=RATIO, **options)
    with pytest.raises(UserError, match="nothing to judge"):
        fairbench.gate(fail_if=RATIO, prediction="hired", group="sex")


def test_an_audit_has_the_same_gate_and_leaves_it_half_of_its_error_rate():
    frame = decided(1500, 0.5, 0.3)
    given = {"prediction": "hired", "target": "label", "groups": "sex"}
    plain = fairbench.audit(frame, **given)
    report = fairbench.audit(frame, **given, fail_if=[RATIO])
    assert plain.gate is None and "gate" not in plain.document.data
    assert report.gate.data == judge(frame, target="label").data
    assert report.document.data["gate"]["outcome"] == "fails"
    assert "Gate: fails" in report.tables
    assert report.document.summary.found[0].startswith("Gate fails: the impact ratio by sex")
    with pytest.raises(fairbench.GateError, match="gate fails"):
        report.gate.check()
    unsure = fairbench.audit(frame[:60], **given, fail_if=RATIO).document.summary
    assert unsure.still_open[0].startswith("Gate is open: these rows cannot tell")
    assert not any("gate" in sentence.lower() for sentence in unsure.found)
    assert GatedOptions(prediction="hired", fail_if=(RATIO,)).require == "verdict"
    table, options = read(frame, "prediction=hired", "target=label", "group=sex")
    gated = GatedOptions(**vars(options), fail_if=(RATIO,))
    for asked, rate in ((options, 0.05), (gated, 0.025)):
        assert assess(table, asked, only_findings=True).risk == rate / len(RATE_OF)


POLICY = """\
# What the model card promises.
predictions: hiring.csv
prediction: hired
group: [sex]
target: label
epsilon: 0.2
fail_if: [impact_ratio<0.8, "sex:equal_opportunity>0.5"]
"""


def test_a_policy_is_the_same_for_python_and_the_command_line(tmp_path, monkeypatch, capsys):
    policy = tmp_path / "policy" / "fairbench.yaml"
    policy.parent.mkdir()
    policy.write_text(POLICY)
    frame = decided(4000, 0.5, 0.5)
    written(frame, policy.parent, "hiring.csv")
    monkeypatch.chdir(tmp_path)
    gate = fairbench.gate(policy="policy/fairbench.yaml")
    assert main(["gate", "policy=policy/fairbench.yaml"]) == 0
    said, notes = capsys.readouterr()
    assert said == f"{gate.line}\n"
    assert notes.count("note: epsilon= is for the page of fairbench audit") == 2
    assert len(gate.statements) == 2
    assert fairbench.audit(frame, policy=policy).gate.data == gate.data
    # What is given goes before what the policy says.
    assert main(["gate", "policy=policy/fairbench.yaml", "fail_if=accuracy<0.9"]) == 1
    assert fairbench.gate(frame, policy=policy, fail_if="accuracy<0.9").exit_status == 1
    other = written(decided(4000, 0.5, 0.3), tmp_path, "other.csv")
    assert fairbench.gate(other, policy=policy).outcome == "fails"
    assert main(["audit", str(other), f"policy={policy}"]) == 1
    said = capsys.readouterr().out
    assert said.splitlines()[-1].startswith("gate fails: the impact ratio by sex is")


def test_words_of_a_policy_are_texts(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("positive: yes\nthreshold: 0.50\nrare: 10\nleave_out: sex=x\n")
    expected = {"positive": "yes", "threshold": 0.5, "rare": 10, "leave_out": ("sex=x",)}
    assert policy_of(path, Options) == expected


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "there is no such file"),
        (b"\xff\xfe\x00", "no text in UTF-8"),
        (b"# " + b"x" * 200_000, "at most 100,000 are read"),
        (b"grup: sex", "unknown option in p.yaml 'grup': did you mean group"),
        (b"junit: gate.xml", "unknown option in p.yaml 'junit'"),
        (b"group: sex\ngroup: race", "p.yaml gives group twice"),
        (b"group: [[sex]]", "line 1: group is a text or a list of texts"),
        (b"- sex", "is no policy"),
        (b"", "is no policy"),
        (b"group: [sex", "p.yaml, line 1 cannot be read"),
        (b"group: sex\n---\ngroup: race", "cannot be read"),
        (b"threshold: half", "threshold is 'half'; it must be a number"),
        (b"predictions: [a, b]", "predictions is one file"),
        (b"group: " + b"[" * 3000 + b"]" * 3000, "its lists are nested too deep"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_policy_that_cannot_be_is_refused_in_a_line(tmp_path, content, why, refused):
    path = tmp_path / "p.yaml"
    if content is not None:
        path.write_bytes(content)
    refused("gate", "x.csv", f"policy={path}", message=why)


USUAL = ("target=label", "prediction=hired", "group=sex", "epsilon=0.9")


def watched(tmp_path, frame, *words, usual=USUAL):
    """Look at a table, and return the exit status."""
    path = written(frame, tmp_path, "w.csv")
    state, page = f"state={tmp_path / 'w.json'}", f"out={tmp_path / 'page'}"
    return main(["watch", str(path), *usual, state, page, *words])


@pytest.mark.thorough
def test_a_watch_ends_as_its_conditions_do(tmp_path, capsys):
    frame = decided(6000, 0.6, 0.4)
    gap = "fail_if=statistical_parity>0.1"
    assert watched(tmp_path, frame[:100], gap) == 3
    assert capsys.readouterr().out.splitlines()[-1].startswith("gate is open: these rows cannot")
    assert watched(tmp_path, frame, gap, f"junit={tmp_path / 'w.xml'}") == 1
    assert "failures=" in (tmp_path / "w.xml").read_text()
    assert "gate fails: the gap in selection rate" in capsys.readouterr().out
    assert watched(tmp_path, frame, "fail_if=sex:statistical_parity>0.5") == 0
    assert watched(tmp_path, frame) == 0
    capsys.readouterr()
    assert watched(tmp_path, frame, "fail_if=impact_ratio<0.8") == 2
    assert "impact_ratio is not watched, but statistical_parity" in capsys.readouterr().err


def test_a_watch_with_a_condition_that_cannot_be_begins_no_state(tmp_path, capsys):
    frame = decided(200, 0.6, 0.4)
    for condition in ("impact_ratio<0.8", "race:statistical_parity>0.1", "statistical_parity<0.1"):
        assert watched(tmp_path, frame, f"fail_if={condition}") == 2
        assert not (tmp_path / "w.json").exists()
    assert capsys.readouterr().err.count("\n") == 3


def test_a_watch_reads_a_policy_of_its_own_options(tmp_path, capsys):
    policy = tmp_path / "watch.yaml"
    text = "target: label\nprediction: hired\ngroup: [sex]\nepsilon: 0.9\n"
    policy.write_text(f"{text}fail_if: statistical_parity>0.1\n")
    asked = tmp_path, decided(6000, 0.6, 0.4), f"policy={policy}"
    assert watched(*asked, usual=()) == 1
    assert "gate fails: the gap in selection rate by sex" in capsys.readouterr().out
    assert watched(*asked, "fail_if=statistical_parity>0.5", usual=()) == 0
    policy.write_text(f"{text}weight: w\n")
    assert watched(*asked, usual=()) == 2
    assert "unknown option in watch.yaml 'weight'" in capsys.readouterr().err


@pytest.mark.thorough
def test_an_alarm_is_a_failure_whatever_a_condition_says(tmp_path):
    frame = decided(6000, 0.7, 0.3)
    assert watched(tmp_path, frame, "fail_if=statistical_parity>0.8", usual=USUAL[:3]) == 1
