"""Today's answers are those of the frozen commit, to ten digits: nothing changes unnoticed.

``make golden`` compares many more, to twelve digits, and ``python -m benchmarks.golden write``
writes the files that are compared here. They change only where the frozen commit does, a name, or
the wording of a sentence.
"""

import io
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from benchmarks.golden import compare, frozen
from benchmarks.golden.cases import ARRAYS, COMMITTED, REFUSALS, Selection
from benchmarks.golden.collect import collect
from benchmarks.golden.compare import comparable, differences
from benchmarks.golden.evaluating import evaluated
from fairbench.cli.main import main
from fairbench.experiments.execute import carry_out
from tests.harness import configuration

KINDS = ("runs", "tables", "arrays", "audits", "refusals")


def ask(task, words, folder):
    """Ask this tree in this process, which is ten times as fast as a process a question.

    As `benchmarks.golden.frozen.commands_of` does.
    """
    printed, errors = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(printed), redirect_stderr(errors):
        if task == "run":
            *others, results = words
            carry_out(configuration(*others, results=results.removeprefix("results=")))
            status = 0
        else:
            status = main([task, *words])
    return frozen.Reply(status, printed.getvalue(), errors.getvalue())


def differing(selection, folder):
    """Ask this tree the cases of a selection; say where its answers are not the committed ones.

    All at once, as tables are made of the runs, and workers would each ask again what they share.
    """

    def evaluate(questions, folder):
        return [evaluated(question) for question in questions]

    result = comparable(collect(ask, evaluate, folder, selection, lambda line: None))
    was = {kind: compare.read_committed(kind) for kind in result}
    asked = {kind: {name: was[kind][name] for name in result[kind]} for kind in result}
    return list(differences(comparable(asked), result, compare.same_to_ten_digits))


@pytest.mark.thorough
def test_answers_are_those_of_the_frozen_commit(tmp_path):
    assert not differing(COMMITTED.at_hand(Path("nowhere"), lambda line: None), tmp_path)


@pytest.mark.data
def test_answers_on_raw_files_are_those_of_the_frozen_commit(tmp_path):
    selection = COMMITTED.at_hand(frozen.raw_data(), lambda line: None)
    runs = tuple(case for case in selection.runs if case.raw)
    if not runs:
        pytest.skip("raw files not found: " + ", ".join(sorted(COMMITTED.raw_files)))
    assert not differing(Selection(runs, (), (), (), ()), tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_committed_answer_is_of_a_case(kind):
    assert set(compare.read_committed(kind)) == {case.name for case in getattr(COMMITTED, kind)}


def test_refusals_were_refused_for_their_cause():
    """A wrong case would otherwise agree with itself for ever."""
    expected = {case.name: case for case in REFUSALS}
    for name, answer in compare.read_committed("refusals").items():
        assert answer == {"status": expected[name].status, "missing": [], "traceback": False}
    arrays = compare.read_committed("arrays")
    for case in ARRAYS:
        assert (arrays[case.name] == {"refused": True, "missing": []}) == bool(case.cause)


@pytest.mark.parametrize(
    ("was", "found", "sentence"),
    [
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0000000000000004]}, "row 2 (): a was 2.0, is"),
        ({"metric": ["x"], "n": [1]}, {"metric": ["x"], "n": [1.0]}, "row 1 (x): n was 1, is 1.0"),
        ({"a": [1]}, {"b": [1]}, "'a' is missing"),
        ({"a": [1]}, {"a": [1, 2]}, "had 1 rows, has 2"),
        ({"a": {"b": [{"c": 0.0}]}}, {"a": {"b": [{"c": -0.0}]}}, "a, b, item 1, c: was 0.0"),
        ([[1]], [[1], [2]], "had 1 items, has 2"),
    ],
)
def test_differences_to_the_last_bit_are_found_and_placed(was, found, sentence):
    assert sentence in " ".join(differences(was, found, compare.same_bits))


def test_equal_answers_do_not_differ():
    one, other = ({"a": [float("nan"), 1.5], "b": {"c": None}} for _ in range(2))
    assert not list(differences(one, other, compare.same_bits))
    assert compare.same_to_ten_digits(0.1234567891, 0.12345678914)
    assert not compare.same_to_ten_digits(0.1234567891, 0.123456788)


def test_a_clone_without_the_frozen_commit_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(frozen, "COMMIT", "0" * 40)
    with pytest.raises(frozen.GoldenError, match="full clone") as refusal, frozen.frozen_tree():
        pass
    assert len(str(refusal.value).splitlines()) == 1


def test_what_is_no_result_is_not_compared():
    assert comparable({"version": "1", "options": {"path": "x", "seed": 0}}) == {
        "options": {"seed": 0}
    }
