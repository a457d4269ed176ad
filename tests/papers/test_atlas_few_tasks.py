"""Approaches that were run on few tasks decide no claim."""

import re

import pytest

from fairbench.components.papers.atlas.page import docs_page, evidence_text, with_claims
from fairbench.components.papers.atlas.thresholds import HOLDS, OPEN
from fairbench_rank.standings import few_tasks_sentences, findings_of
from tests.extensions.rank import generated_atlas
from tests.extensions.rank.generated_atlas import with_few


@pytest.fixture(scope="module")
def plain():
    return with_claims(findings_of(generated_atlas.table(), metrics=("error_rate",)), draws=60)


@pytest.fixture(scope="module")
def findings():
    return with_claims(
        findings_of(with_few(generated_atlas.table()), metrics=("error_rate",)), draws=60
    )


@pytest.mark.thorough
def test_it_is_part_of_claims_and_decides_none(plain, findings):
    before = {claim.name: claim.verdict for claim in plain.claims}
    assert {claim.name: claim.verdict for claim in findings.claims} == before
    (claim,) = (claim for claim in findings.claims if claim.name == "unprocessing_dominates")
    parts = [part for part in claim.parts if part.label.startswith("reductions")]
    assert claim.verdict == HOLDS
    assert parts and {part.verdict for part in parts} - {HOLDS}
    assert all(part.few_tasks and part.families == 4 for part in parts)
    assert len(claim.deciding_parts) == len(claim.parts) - len(parts)
    assert evidence_text(claim).endswith(
        f" {len(parts)} differences, measured on few tasks, are not counted."
    )


def test_a_claim_of_few_tasks_alone_is_not_resolved():
    table = with_few(generated_atlas.table(learners=("logistic_regression",)))
    alone = table[table["intervention"] != "reweighing"]
    result = {
        claim.name: claim for claim in with_claims(findings_of(alone, metrics=()), draws=20).claims
    }
    claim = result["unprocessing_dominates"]
    assert claim.parts and not claim.deciding_parts
    assert claim.verdict == OPEN
    assert evidence_text(claim) == "nothing on enough tasks to tell"


def test_the_docs_say_how_many_and_why(findings):
    (said,) = few_tasks_sentences(findings)
    text = docs_page(findings)
    assert said in text and "### Run on few tasks" in text
    assert "| few tasks |" in text
    assert not re.search(r"\b1 (are|hold|fail)\b", text)
