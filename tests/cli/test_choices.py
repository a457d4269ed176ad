"""Choices of a run: each has a sentence, in the help, by `fairbench explain` and on a page."""

import pytest

from docs import pages
from fairbench.cli import command as choices
from fairbench.cli import run_help
from fairbench.cli.main import main
from tests.harness import ROOT, listed, options

EXPLAINED = [group for group in choices.GROUPS if group != "dataset"]


@pytest.mark.thorough
def test_the_page_of_choices_is_made_from_the_files():
    page = (ROOT / "docs/choices.md").read_text(encoding="utf-8").splitlines()
    own = {f"- `{name}`" for group in EXPLAINED for name in {*options(group)} - {*listed(group)}}
    made = [line for line in pages.choices().splitlines() if not line.startswith(tuple(own))]
    assert page == made, "write it anew: python -m docs.pages"


def test_the_help_of_a_run_says_what_each_learner_intervention_and_method_is(capsys):
    assert main(["run", "--help", "all"]) == 0
    whole = " ".join(capsys.readouterr().out.split())
    assert main(["run", "--help"]) == main(["help", "run"]) == 0
    first = capsys.readouterr().out
    for group in ("split", "learner", "intervention", "method"):
        for name, sentence in choices.sentences(group):
            assert sentence.endswith(".") and f"{name} {sentence}" in whole
        assert f"  {group}=  {choices.GROUPS[group]}" in first


@pytest.mark.parametrize("group", choices.GROUPS)
def test_every_option_of_a_choice_is_explained_by_a_whole_phrase(group):
    for choice in listed(group):
        for option, meaning in run_help._option_meanings(group, choice).items():
            where = f"{group}={choice}: {option}"
            assert len(meaning.split()) > 1, where
            assert meaning.split()[0] not in ("or", "of", "such", "at"), f"{where}: {meaning}"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("simulated", "group majority: 1515 (0."),
        ("simulated_regression", "target, and label 1 y rate "),
        ("simulated_classes", "y: low < "),
        ("table", "not known before they are named: dataset=table needs dataset.path=FILE"),
        ("adult", "not known, as adult/adult.data is not here; fairbench data check fetches"),
    ],
)
def test_rows_target_and_groups_are_printed_or_said_to_be_unknown(
    name, expected, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["data", name, f"search_path=[{tmp_path}]"]) == 0
    assert expected in " ".join(capsys.readouterr().out.split())
