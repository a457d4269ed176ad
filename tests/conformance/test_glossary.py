"""The glossary: terms in order, a sentence each, with every metric and status that people meet."""

from fairbench.cli.verbs.explain import _glossary
from fairbench.metrics.registry import declared
from fairbench.reporting.document.model import Document, Section
from fairbench.reporting.document.writing import to_html
from tests.harness import ROOT, ours


def test_terms_are_in_order_and_explained_in_a_sentence():
    terms: list[str] = []
    for part in (ROOT / "docs/glossary.md").read_text().split("\n## ")[1:]:
        lines = [line for line in part.splitlines()[1:] if line]
        assert all(line.startswith("- **") for line in lines)
        rows = [line[4:].split("**: ", 1) for line in lines]
        of_theme = [term.lower() for term, _ in rows]
        assert of_theme == sorted(of_theme) and len(rows) > 5
        assert all(sentence[0].isupper() and sentence.endswith(".") for _, sentence in rows)
        terms += of_theme
    assert len(set(terms)) == len(terms) <= 180 and len(terms) == len(_glossary())
    text = " ".join(terms)
    gaps = ours(metric.label for metric in declared() if metric.is_gap)
    gaps = [label for label in gaps if "gap" not in label]
    for term in (*gaps, "insufficient", "undefined", "invalid", "cell", "run", "fold", "rope"):
        assert term in text, term


def test_every_page_names_the_glossary():
    assert "docs/glossary.md" in to_html(Document("A page", [Section("s", [])]))


# Without what its links lead to.
