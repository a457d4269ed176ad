"""The examples of docs/examples, copied where README says, run; and the tests find them."""

import sys

import pytest

from tests.conformance import readers, trees
from tests.harness import ROOT, python

EXAMPLES = ROOT / "docs/examples"
NAMES = {
    group: next((EXAMPLES / group).glob("*.py")).stem for group in (*readers.EXAMPLES, "metric")
}
FILES = sorted(file for file in EXAMPLES.glob("*/*") if file.suffix != ".csv")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Return a clone with every example in its place."""
    scratch = trees.clone(tmp_path_factory.mktemp("checkout") / "clone")
    readers.put_components(scratch)
    return scratch


def printed(checkout, *words):
    """Return what Python prints in the copy, where it imports nothing of this checkout."""
    return python(*words, cwd=checkout, PYTHONPATH=str(checkout)).stdout


@pytest.mark.slow
@pytest.mark.parametrize("group", NAMES)
def test_make_test_one_finds_and_checks_each(checkout, group):
    """As the page tells a contributor to do it, with this environment in place of a new one."""
    command = [
        *("make", "test-one", f"NAME={NAMES[group]}", "ARGS=-rA -n0 -p no:cacheprovider"),
        *(f"VENV={sys.prefix}", "-o", f"{sys.prefix}/.installed"),
    ]
    code = f"import subprocess, sys; sys.exit(subprocess.call({command}))"
    lines = printed(checkout, "-c", code).splitlines()
    passed = [line for line in lines if line.startswith("PASSED")]
    assert any(NAMES[group] in line for line in passed)


@pytest.mark.slow
def test_tests_of_the_whole_tree_take_them_as_they_are(checkout):
    files = ("test_architecture.py", "conformance/test_glossary.py")
    quiet = ("-q", "-n0", "-p", "no:cacheprovider")
    printed(checkout, "-m", "pytest", *quiet, *(f"tests/{file}" for file in files))


@pytest.mark.thorough
def test_the_grid_of_combinations_has_them(checkout):
    (checkout / "tests/__init__.py").touch()
    row = ("simulated", *(NAMES[group] for group in ("learner", "intervention", "method")))
    grid = f"from tests.conformance.grid import every, refused; row = {row}"
    assert "True None" in printed(checkout, "-c", f"{grid}; print(row in every(), refused(*row))")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_page_on_components_has_every_example(file):
    """Word for word, or by a link, beside which the site shows the file."""
    page = (ROOT / "docs/howto/extend.md").read_text(encoding="utf-8")
    language = {".py": "python", ".yaml": "yaml"}[file.suffix]
    block = f"```{language}\n{file.read_text(encoding='utf-8')}```\n"
    place = f"../examples/{file.relative_to(EXAMPLES)}"
    shown = f"({place}):\n\n```{{literalinclude}} {place}\n```\n"
    assert block in page or shown in page, f"link {place} in docs/howto/extend.md, and include it"
