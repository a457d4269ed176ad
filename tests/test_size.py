"""The budgets of docs/decisions/13_size.md: lines of code, files, records, names, options."""

import ast
import io
import re
import tokenize
from collections import Counter
from functools import cache

import pytest

from tests.harness import ROOT

PAGE = (ROOT / "docs" / "decisions" / "13_size.md").read_text(encoding="utf-8")
BUDGETS = {
    name: int(most.replace(",", ""))
    for name, most in re.findall(r"(?m)^\| `([\w/]+(?:: [a-z ]+)?)` \| ([\d,]+) \|$", PAGE)
}
SLACK = 1.03  # a budget that is further above what there is should have been lowered
LAYOUT = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source, nodes):
    """Return how many lines have a token that is neither comment nor docstring."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes:
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines -= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    return len(lines)


def is_record(node):
    """Say whether a node is a class whose fields are declared."""
    if not isinstance(node, ast.ClassDef):
        return False
    words = map(ast.unparse, [*node.decorator_list, *node.bases])
    return any(re.search("dataclass|NamedTuple|TypedDict", word) for word in words)


def is_option(node):
    """Say whether a node declares an option of a command."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return called and node.func.id in ("option", "column")


@cache
def counts_of_file(path):
    """Return the counts of one file, which several folders have in them."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    nodes = [*ast.walk(tree)]
    names = [node.name for node in tree.body if isinstance(node, DOCUMENTED)]
    return {
        "": code_lines(source, nodes),
        "files": 1,
        "record classes": sum(map(is_record, nodes)),
        "options": sum(map(is_option, nodes)),
        "public names": sum(not name.startswith("_") for name in names),
    }


def counts(folder):
    """Return the counts of a folder, without what its links lead to."""
    files = map(counts_of_file, sorted((ROOT / folder).rglob("*.py")))
    return sum(map(Counter, files), Counter())


def test_every_package_has_a_budget():
    packages = {path.parent.name for path in (ROOT / "fairbench").glob("*/__init__.py")}
    paths = ROOT.glob("extensions/*/fairbench_*")
    extensions = {f"extensions/{path.parent.name}" for path in paths}
    assert {f"fairbench/{name}" for name in packages} | extensions <= {*BUDGETS}
    assert {"fairbench", "fairbench: files", "papers", "benchmarks", "tests"} <= {*BUDGETS}


@pytest.mark.thorough
@pytest.mark.parametrize("name", BUDGETS)
def test_no_budget_is_passed_and_none_is_left_high(name):
    folder, _, what = name.partition(": ")
    reached = counts(folder)[what]
    assert reached <= BUDGETS[name], f"{name} has {reached:,}: decide something once, or say why"
    assert BUDGETS[name] <= SLACK * reached + 20, f"{name} has {reached:,}: lower its budget"
