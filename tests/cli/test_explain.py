"""The verb explain: terms by theme, their other names, and every heading that a table has."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from docs import pages
from fairbench.cli import command as choices
from fairbench.cli import run_help
from fairbench.cli.main import main
from fairbench.cli.verbs.explain import _explained, _glossary
from fairbench.evaluation.summary import HEADLINES, summarise
from fairbench.inference.comparing import Comparison
from fairbench.reporting.comparisons import pair_document, ranking_document
from fairbench.reporting.document import terminal
from fairbench.reporting.runs import _run_document
from tests.audits.tables import predictions, written
from tests.extensions.rank.test_rank import scores
from tests.harness import ROOT, listed, options
from tests.reporting.test_runs import metrics_of


@pytest.fixture
def printed(monkeypatch):
    """The documents that commands print."""
    documents = []
    monkeypatch.setattr(terminal, "print_document", documents.append)
    return documents


def unexplained(documents, but=()):
    """Return the headings of the documents' tables that no term, choice or metric is called."""
    tables = [table for each in documents for table in each.tables]
    titles = {column.title for table in tables for column in table.columns} - {"", *but}
    terms = _glossary()
    numbers = {title for title in titles if title.replace(",", "").isdecimal()}
    return sorted(title for title in titles - numbers if not _explained(title, terms))


@pytest.mark.thorough
def test_the_headings_of_an_audit_and_of_a_gate_are_explained(tmp_path, printed):
    frame = predictions(600, bias=0.2).assign(city=["north", "south"] * 300)
    path = str(written(frame, tmp_path))
    common = [path, "target=label", "favourable=1", f"results={tmp_path}"]
    score = [*common, "score=score"]
    assert main(["audit", *score, "group=[sex,race]", "within=[city]"]) == 0
    gate = ["group=sex", "fail_if=impact_ratio<0.8", f"out={tmp_path / 'c'}"]
    assert main(["audit", *score, *gate]) in (0, 1, 3)
    assert len(printed) == 2
    assert not unexplained(printed, ["city", "Male", "Female"])


def test_the_headings_of_a_run_and_of_comparisons_are_explained():
    draws = np.random.default_rng(0).normal(0, 0.1, (100, 2))
    comparison = Comparison(("accuracy", "equal_opportunity"), draws, np.array([0.01, 0.01]))
    events, halves = pd.DataFrame([{"A >> B": 0.5, "A ~ B": 0.5}] * 2), np.full((2, 2), 0.5)
    of_all = {"data": "all", "groups": "sex", "objectives": ("accuracy",), "certainty": 0.95}
    documents = [
        _run_document(summarise(metrics_of(("A", "B", "C"))), "a run", "sex"),
        pair_document(
            names=["one", "other"], everywhere=events, inside=events, shown=comparison,
            observed=halves, level=0.975, tested="like these rows", computed="so",
        ),
        ranking_document(halves, np.array([1, 1]), ["a", "b"], ["1", "2"], **of_all),
    ]  # fmt: skip
    assert not unexplained(documents)
    assert "97.5% interval" in repr(documents[1])
    for title in ("id", "run", *HEADLINES["binary"], "95 % interval", "outperforms"):
        assert _explained(title, _glossary()), title


def test_the_headings_of_a_ranking_are_explained(tmp_path, printed):
    scores(splits=2).to_csv(tmp_path / "scores.csv", index=False)
    path, out = str(tmp_path / "scores.csv"), f"out={tmp_path / 'page'}"
    assert main(["rank", path, "split=fold", "score=accuracy", out]) == 0
    assert not unexplained(printed, ["mean accuracy"])


def test_terms_are_listed_by_theme(capsys):
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 80 and max(map(len, lines)) <= 100
    assert "Intervals and verdicts" in lines and "Headings of tables" in lines
    assert any("calibration; conformal prediction" in line for line in lines)


TERMS = yaml.safe_load(Path(__file__).with_name("explained.yaml").read_text())


@pytest.mark.parametrize(("words", "parts"), TERMS.items())
def test_headings_abbreviations_metrics_and_choices_are_explained(words, parts, capsys):
    assert main(["explain", *words.split()]) == 0
    said = capsys.readouterr().out
    assert all(part in said for part in parts)


# Choices of a run: each has a sentence, in the help, by `fairbench explain` and on a page.


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


DATA_SETS = [
    ("simulated", "group majority: 1515 (0."),
    ("simulated_regression", "target, and label 1 y rate "),
    ("simulated_classes", "y: low < "),
    ("table", "not known before they are named: dataset=table needs dataset.path=FILE"),
    ("adult", "not known, as adult/adult.data is not here; fairbench data check fetches"),
]


@pytest.mark.parametrize(("name", "expected"), DATA_SETS)
def test_rows_target_and_groups_are_printed_or_said_to_be_unknown(
    name, expected, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["data", name, f"search_path=[{tmp_path}]"]) == 0
    assert expected in " ".join(capsys.readouterr().out.split())
