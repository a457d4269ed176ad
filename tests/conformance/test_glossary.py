"""The glossary: terms in order, a sentence each, with every metric and status that people meet."""

from fairbench.metrics.registry import declared
from tests.harness import ROOT


def test_terms_are_in_order_and_explained_in_a_sentence():
    lines = (ROOT / "docs/glossary.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][2:]
    terms = [term.lower() for term, _ in rows]
    assert terms == sorted(set(terms))
    assert all(sentence[0].isupper() and sentence.endswith(".") for _, sentence in rows)
    text = " ".join(terms)
    gaps = [each.label for each in declared() if each.is_gap and "gap" not in each.label]
    for term in (*gaps, "insufficient", "undefined", "invalid", "cell", "run", "fold", "rope"):
        assert term in text, term
