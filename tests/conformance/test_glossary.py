"""The glossary: terms in order, a sentence each, with every metric and status that people meet."""

import ast
from collections import Counter

from fairbench.metrics.registry import declared
from fairbench.reporting.document.html import to_html
from fairbench.reporting.document.model import Document, Section
from tests.harness import ROOT


def test_terms_are_in_order_and_explained_in_a_sentence():
    lines = (ROOT / "docs/glossary.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][2:]
    terms = [term.lower() for term, _ in rows]
    assert terms == sorted(set(terms))
    assert all(sentence[0].isupper() and sentence.endswith(".") for _, sentence in rows)
    text = " ".join(terms)
    gaps = [metric.label for metric in declared() if metric.is_gap and "gap" not in metric.label]
    for term in (*gaps, "insufficient", "undefined", "invalid", "cell", "run", "fold", "rope"):
        assert term in text, term


def test_every_page_names_the_glossary():
    assert "docs/glossary.md" in to_html(Document("A page", [Section("s", [])]))


FORBIDDEN = {
    *("say", "words", "beside", "better", "drawn", "goodness", "sitting"),
    *("knowledge", "beginning", "chosen", "card", "worth"),
}


def test_names_are_standard_terms_and_a_class_of_the_library_has_one_meaning():
    classes = Counter()
    for folder in ("fairbench", "algorithms", "datasets", "papers"):
        for file in (ROOT / folder).rglob("*.py"):
            assert file.stem not in FORBIDDEN, file
            tree = ast.parse(file.read_text())
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    assert node.name.lower().strip("_") not in FORBIDDEN, (file, node.name)
            if folder == "fairbench":
                classes.update(node.name for node in tree.body if isinstance(node, ast.ClassDef))
    public = {name: count for name, count in classes.items() if not name.startswith("_")}
    assert max(public.values()) == 1, [name for name, count in public.items() if count > 1]
