"""The atlas's page: the leaderboard's, with the claims."""

import pytest

from fairbench.components.papers.atlas.page import add_claims, with_claims
from fairbench.reporting.document.terminal import print_document, terminal
from fairbench.reporting.document.writing import to_html
from fairbench_rank.leaderboard import BoardTable, board_findings, page_of, short_of
from tests.extensions.rank.generated_atlas import table

GAP = "equalized_odds"


@pytest.fixture(scope="module")
def told():
    """A generated atlas whose interventions lower the gap and cost errors, and its findings."""
    whole = table(families=(1, 1, 1, 2), learners=("xgboost",), repeats=3)
    left = ["log_loss", "multicalibration_error", "expected_calibration_error"]
    left += ["statistical_parity"]
    board = BoardTable(whole.drop(columns=left))
    return board, with_claims(board_findings(board, GAP), draws=40)


@pytest.fixture(scope="module")
def document(told):
    return page_of(*told, GAP, further=lambda page, *_: add_claims(page, told[1], GAP))


def test_it_opens_with_the_answer_and_the_picture(document):
    by_size, best, *_ = document.summary.found
    asked = "At the same gap, thresholds for each group, which need the group at prediction, err"
    assert by_size.startswith(asked) and "rows" in by_size
    assert "error rate" in best
    sized, frontier = document.lead[:2]
    assert (sized.name, frontier.name) == ("by-size", "frontier")


def test_the_sections_show_what_the_statistics_say(document, told):
    page, findings = to_html(document), told[1]
    assert [section.title for section in document.sections] == [
        *("Ranks", "Claims", "Cost and benefit", "What explains it", "Data sets"),
        "Download and origin",
    ]
    for claim in findings.claims:
        assert claim.source in page and f">{claim.verdict}</span>" in page
    drawn = [name for name in document.files if name.startswith("figures/")]
    assert len(drawn) == len(set(drawn)) >= 6 + 2


def test_the_terminal_counts_the_claims(document, told, capsys):
    print_document(short_of(document, told[1], GAP), terminal(80))
    printed = capsys.readouterr().out
    assert "What is not resolved" in printed and "claims of the literature" in printed
