"""Choices of a run: each has a sentence, in the help, by `fairbench explain` and on a page."""

import pytest

from fairbench.cli import choices, run_help
from fairbench.cli.main import main
from tests.harness import ROOT

EXPLAINED = [group for group in choices.GROUPS if group != "dataset"]


@pytest.mark.parametrize("group", EXPLAINED)
def test_the_file_of_every_choice_begins_with_a_sentence(group):
    for name, sentence in choices.sentences(group):
        assert sentence[:1].isupper() or sentence.startswith("fairlearn"), name
        assert sentence.endswith("."), name


@pytest.mark.thorough
def test_the_page_of_choices_is_made_from_the_files():
    page = (ROOT / "docs/choices.md").read_text(encoding="utf-8")
    assert page == choices.page(), (
        "write it anew: python -m fairbench.cli.choices > docs/choices.md"
    )


def test_the_help_of_a_run_says_what_each_learner_intervention_and_method_is(capsys):
    assert main(["run", "--help", "all"]) == 0
    whole = " ".join(capsys.readouterr().out.split())
    assert main(["run", "--help"]) == 0
    first = capsys.readouterr().out
    for group in ("split", "learner", "intervention", "method"):
        assert all(f"{name} {sentence}" in whole for name, sentence in choices.sentences(group))
        assert all(name in first for name in choices.names(group))


@pytest.mark.parametrize("group", choices.GROUPS)
def test_every_option_of_a_choice_is_explained_by_a_whole_phrase(group):
    for choice in choices.names(group):
        for option, meaning in run_help.meanings(group, choice).items():
            where = f"{group}={choice}: {option}"
            assert len(meaning.split()) > 1, where
            assert meaning.split()[0] not in ("or", "of", "such", "at"), f"{where}: {meaning}"


def test_the_data_sets_that_the_help_names_first_have_a_phrase_and_the_others_a_place(capsys):
    assert main(["run", "--help"]) == 0
    printed = capsys.readouterr().out
    assert "      german          Credit in Germany: " in printed
    assert f"      and {len(choices.names('dataset')) - 7} more: fairbench data" in printed
    assert "twins_under2000g" not in printed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["demographic", "parity"], "statistical parity  Equal selection rates"),
        (["recall"], "true positive rate  "),
        (["FPR"], "false positive rate  "),
        (["equalised", "odds"], "equalized odds  "),
        (["ensemble"], "method=ensemble  A bag of models"),
        (["binomial-nll"], "method=binomial_nll  "),
        (["german"], "dataset=german  German credit"),
        (["method"], "self_consistency "),
    ],
)
def test_terms_of_the_field_and_choices_are_explained(words, expected, capsys):
    assert main(["explain", *words]) == 0
    assert expected in capsys.readouterr().out


def test_an_unknown_term_is_refused_with_the_nearest_choice(capsys):
    assert main(["explain", "binomial_nl"]) == 2
    assert "did you mean binomial_nll?" in capsys.readouterr().err


def test_the_datasheet_of_a_data_set_is_printed_and_an_unknown_one_refused(capsys):
    assert main(["data", "german"]) == 0
    printed = capsys.readouterr().out
    assert "German credit" in printed and "licence" in printed
    assert main(["data", "chek"]) == 2
    assert "did you mean check" in capsys.readouterr().err
    assert main(["data", "germn"]) == 2
    assert "unknown data set 'germn': did you mean german" in capsys.readouterr().err
