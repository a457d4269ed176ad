"""Fingerprints: what of code, configurations and packages they see, and what they do not."""

import ast
from dataclasses import dataclass

import pytest

from fairbench.core import fingerprint
from fairbench.core.fingerprint import code_digest, describe, versions
from fairbench.core.text import digest
from tests.harness import ROOT, quick

SOURCE = '''
"""What the module is for."""
from __future__ import annotations

from dataclasses import dataclass

from lib.errors import UserError, unknown_name
from lib.tools import half

RATE = 0.5
CHOICES = frozenset({"b", "a"})


@dataclass(frozen=True)
class Model:
    """A model."""

    depth: int = 3

    def fit(self, x, *, weight=None):
        """Fit it."""
        while True:
            if x > self.depth and weight is None:
                return half(x) + RATE
            x = [each + 1 for each in (x, 2)][0]


def check(x: int, names: list[str]) -> float:
    if x < 0:
        raise UserError(f"x is {x}; it must be at least 0")
    if x not in names:
        raise unknown_name("name", x, names)
    return x in {1, "b", "c"}
'''
TOOLS = "def half(x):\n    return x / 2\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that writes modules of a package `lib` and returns their digest."""
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    monkeypatch.setattr(fingerprint, "PACKAGES", ("lib",))

    def digest_of(source=SOURCE, modules=("lib.model",), **others):
        for name, text in {"tools": TOOLS, **others, "model": source}.items():
            path = tmp_path / "lib" / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        fingerprint._parts_of.cache_clear()
        code_digest.cache_clear()
        return code_digest(tuple(modules))

    yield digest_of
    fingerprint._parts_of.cache_clear()


# Of each, whether it computes.
CHANGES = [
    ('    """A model."""\n', "", False),
    ('"""What the module is for."""\n', "", False),
    ("Fit it.", "Fit it to rows.\n\n        At length.\n        ", False),
    ('{1, "b", "c"}', "{'c', 1, 'b'}", False),
    # What errors say, and what type checkers read.
    ("it must be at least 0", "give a number of at least 0", False),
    ('unknown_name("name"', 'unknown_name("number"', False),
    ("names: list[str]", "names: tuple[str, ...]", False),
    ("-> float", "-> int", False),
    ("0.5", "0.25", True),
    ("depth: int = 3", "depth: int = 4", True),
    ("frozen=True", "frozen=False", True),
    ('"b", "a"', '"c", "a"', True),
    ('{1, "b", "c"}', "{1, 'b'}", True),
    ("weight=None", "weight=1", True),
    ("*, weight", "weight", True),
    ("x > self", "x >= self", True),
    ("x < 0", "x < 1", True),
]


@pytest.mark.parametrize(("old", "new", "counts"), CHANGES)
def test_what_computes_counts_and_nothing_else(project, old, new, counts):
    assert old in SOURCE
    assert (project(SOURCE.replace(old, new)) != project()) == counts


def test_one_and_true_are_not_the_same_code(project):
    assert len({project(f"RATE = {value}\n") for value in ("1", "1.0", "True", "'1'")}) == 4


def test_the_code_of_an_imported_module_counts_wherever_it_is_imported(project):
    for statement in (
        "from lib.tools import half\nX = half",
        "from lib import tools\nX = tools.half",
        "import lib.tools",
        "import lib.tools as t",
        "def f():\n    from lib.tools import half\n    return half",
        "class A:\n    def f(self):\n        import lib.tools",
        "from lib.middle import thing\nX = thing",
    ):
        middle = "import lib.tools\nthing = 1\n"
        before = project(statement, middle=middle)
        assert project(statement, middle=middle, tools=TOOLS.replace("/ 2", "/ 3")) != before
        assert project(statement, middle=middle, tools=TOOLS + "# a comment\n") == before


HALF, TWICE = "def half(x):\n    return x / 2\n", "def twice(x):\n    return 2 * x\n"
TWO = f"{HALF}\n\n{TWICE}"
THROUGH = TWO.replace("x / 2", "x / 2 + twice(0)")
WITHIN = "def half(x):\n    with {}(x):\n        return x / 2\n"
USER = "from lib.tools import half\nX = half(1)\n"
BOTH = "from lib.tools import half, twice\nX = half(1) - twice(1)\n"
APART = BOTH.replace("half, twice", "half\nfrom lib.doubles import twice")
PASSED_ON = f"from lib.doubles import twice\n\n\n{HALF}"
RENAMED = "from lib.{} import {}\nX = f(1) - g(1)\n"
AS, AS_OTHERS = "half as f, twice as g", "twice as f, half as g"
TYPED = "from __future__ import annotations\nfrom lib.tools import half\ndef f(x: half): 1\n"
SUBMODULE = "from lib.sub.deep import x\nfrom lib.none import y\nZ = x, y\n"
USED = {
    "what is used": (USER, {"tools": TWO}, {"tools": TWO.replace("x / 2", "x / 3")}),
    "what that uses": (
        USER, {"tools": THROUGH}, {"tools": THROUGH.replace("2 * x", "3 * x")},
    ),
    "what is passed on": (
        BOTH, {"tools": PASSED_ON, "doubles": TWICE},
        {"tools": PASSED_ON, "doubles": TWICE.replace("2 *", "3 *")},
    ),
    **{f"what runs when it is imported: {statement}": (
        USER, {"tools": f"{TWO}\n{statement}\n"},
        {"tools": f"{TWO}\n{statement}\n".replace("2 * x", "3 * x")},
    ) for statement in (
        "twice(1)", "ALL = {}\nALL['twice'] = twice", "for f in (twice,):\n    f(1)",
        "def keep(f):\n    return f\n\n@keep\ndef kept(x):\n    return 2 * x",
    )},
    "what opens a file": (SOURCE, {}, {"tools": WITHIN.format("locked")}),
    "a submodule": (SUBMODULE, {"sub__deep": "x = 1\n"}, {"sub__deep": "x = 2\n"}),
}  # fmt: skip
UNUSED = {
    "what is not used": (USER, {"tools": TWO}, {"tools": TWO.replace("2 * x", "3 * x")}),
    "a guard": (SOURCE, {}, {"tools": WITHIN.format("guarded")}),
    "what is for types alone": (TYPED, {"tools": "half = 1"}, {"tools": "half = 2"}),
    "another module": (SOURCE, {"other": "X = 1\n"}, {"other": "X = 2\n"}),
    "where it is passed on": (
        BOTH, {"tools": TWO}, {"tools": PASSED_ON, "doubles": TWICE},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*USED, *UNUSED])
def test_of_other_modules_what_is_used_counts(project, name):
    source, one, other = (USED | UNUSED)[name]
    assert (project(source, **one) != project(source, **other)) == (name in USED)


def test_what_is_imported_counts_and_where_it_lies_does_not(project):
    for one, other, counts in (
        ("from json import load\nX = load(1)\n", "from pickle import load\nX = load(1)\n", True),
        ("X = change(1, needs=1)\n", "X = change(1, needs=2)\n", True),
        # What a declaration has for people.
        ("X = Capabilities(1, needs=1)\n", "X = Capabilities(1, needs=2)\n", False),
        (SOURCE, SOURCE + "import json, numpy\n", True),
        # Otherwise another function would be called by the same code, and nothing fitted again.
        (RENAMED.format("tools", AS), RENAMED.format("tools", AS_OTHERS), True),
        # Moving a definition to another module.
        (BOTH, APART, False),
        (RENAMED.format("tools", AS), RENAMED.format("deep.halves", AS), False),
    ):  # fmt: skip
        others = {"tools": TWO, "doubles": TWICE, "deep__halves": TWO}
        assert (project(one, **others) != project(other, **others)) == counts


def test_modules_may_import_each_other_and_their_order_does_not_matter(project):
    tools = "import lib.model\n" + TOOLS
    both = project(tools=tools, modules=("lib.model", "lib.tools"))
    assert both == project(tools=tools, modules=("lib.tools", "lib.model"))
    assert both == project(tools=tools)
    assert project(modules=("lib.none", "json")) == digest([])


LARGE = ("fairbench", "papers")
SMALL = [name for name in fingerprint.PACKAGES if name not in LARGE]


@pytest.mark.parametrize("package", quick(fingerprint.PACKAGES, SMALL, rest=pytest.mark.slow))
def test_the_layout_of_no_module_of_the_project_counts(package, tmp_path):
    copy = tmp_path / "module.py"
    paths = sorted((ROOT / package).rglob("*.py"))
    assert len(paths) > 5
    for path in paths:
        copy.write_text(ast.unparse(ast.parse(path.read_text())))
        trees = (ast.parse(file.read_bytes()) for file in (path, copy))
        one, other = (ast.dump(fingerprint._Reduce().visit(tree)) for tree in trees)
        assert one == other, path


# --- configurations


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5


@dataclass(frozen=True)
class Outer:
    inner: Inner | None = None
    levels: tuple[float, ...] = (0.5, 0.9)


def test_a_component_is_described_by_its_class_and_fields_and_theirs():
    assert describe(Outer(Inner(0.25))) == {
        "class": "Outer",
        "inner": {"class": "Inner", "rate": 0.25},
        "levels": (0.5, 0.9),
    }
    assert describe(object()) == {"class": "object"}
    result = [Outer(), Outer(Inner()), Outer(Inner(0.25)), Outer(levels=(0.5,)), Inner(), object()]
    assert len({digest(describe(function)) for function in result}) == len(result)


def test_digests_depend_on_values_and_not_on_the_order_of_keys():
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": (1, 2), "a": 1})
    contents = [{}, [], None, {"a": 1}, {"a": "1"}, {"a": 1.5}, {"b": 1}, [1, 2], [2, 1], "1"]
    assert len({digest(content) for content in contents}) == len(contents)
    assert (len(digest("x")), len(digest("x", 12))) == (20, 12)


def test_versions_are_of_the_distributions_installed():
    import numpy

    result = versions(["numpy", "no-such-distribution", "numpy"])
    assert set(result) == {"python", "numpy"}
    assert result["numpy"] == numpy.__version__
