"""Verbs that other distributions add: what is installed, missing, of another version, or twice."""

import shutil
import sys

import pytest

import fairbench
from fairbench.cli import extensions
from fairbench.cli.main import _overview, main
from tests.harness import ROOT, python

VERB = '''"""{sentence}

More of it.
"""

from fairbench.cli.command import Command, Results

{made_for}
print("imported")


def said(options):
    print("{sentence}")
    return 5


COMMAND = Command(Results, said)
'''


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return what installs a distribution with a verb, as pip would, until the test is over."""
    site = tmp_path / "site"
    site.mkdir()
    before = {*sys.modules}
    monkeypatch.syspath_prepend(site)

    def installed(name, verb, *, made_for='MADE_FOR = "0.1"', module=True, group="fairbench.verbs"):
        stem = name.replace("-", "_")
        about = site / f"{stem}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{group}]\n{verb} = {stem}\n")
        if module:
            text = VERB.format(sentence=f"Of {name}.", made_for=made_for)
            (site / f"{stem}.py").write_text(text)
        extensions.added.cache_clear()

    yield installed
    for name in {*sys.modules} - before:
        del sys.modules[name]
    extensions.added.cache_clear()


@pytest.fixture
def alone(monkeypatch):
    """Have no extension be installed: a folder of Python's that has its packages alone."""
    extensions.added.cache_clear()
    monkeypatch.setattr(extensions, "entry_points", lambda group: ())
    yield
    extensions.added.cache_clear()


def test_a_verb_of_a_stranger_is_listed_explained_and_run(install, capsys, refused):
    install("fairbench-greet", "greet")
    assert "  greet        Of fairbench-greet." in _overview().partition("Extensions")[2]
    assert not capsys.readouterr().out  # it is read, and not imported
    assert main(["greet"]) == 5
    assert capsys.readouterr().out.endswith("Of fairbench-greet.\n")
    assert main(["greet", "--help"]) == 0
    assert "More of it." in capsys.readouterr().out
    assert "did you mean greet?" in refused("gret")


def test_two_that_add_one_verb_are_named(install, refused):
    install("fairbench-greet", "greet")
    install("other-greet", "greet")
    error = refused("greet")
    assert "fairbench-greet and other-greet both add it: uninstall one of them" in error
    assert "both add it" in _overview()


@pytest.mark.parametrize(
    ("made_for", "said"), [('MADE_FOR = "0.2"', "fairbench 0.2, and this is"), ("", "no version")]
)
def test_one_of_another_version_is_refused_and_not_imported(made_for, said, install, refused):
    install("fairbench-greet", "greet", made_for=made_for)
    error = refused("greet")
    assert said in error and "install the fairbench-greet that belongs to it" in error


def test_one_whose_files_are_gone_says_so(install, refused):
    install("fairbench-greet", "greet", module=False)
    assert "fairbench_greet, which is not there: install it again" in refused("greet")


def test_a_verb_of_fairbench_itself_is_never_replaced(install, capsys):
    install("fairbench-greet", "explain")
    assert main(["explain", "epsilon"]) == 0
    assert "imported" not in capsys.readouterr().out
    assert "greet" not in _overview()


def test_what_is_not_installed_says_what_installs_it(alone, refused):
    assert "is in the extension fairbench-watch, which is not installed: make setup" in refused(
        "watch"
    )
    assert "did you mean watch?" in refused("wach")
    assert "Extensions" not in _overview()


def test_a_function_is_added_lazily(install, monkeypatch):
    install("fairbench-greet", "greeting", group="fairbench.functions")
    assert "greeting" in dir(fairbench)
    assert fairbench.greeting.__name__ == "fairbench_greet"
    with pytest.raises(AttributeError, match="no attribute 'geeting'"):
        _ = fairbench.geeting


def test_another_project_of_the_name_is_told_from_ours(tmp_path):
    """Its files lie over ours where both were installed, and pip says nothing."""
    shutil.copytree(ROOT / "fairbench", tmp_path / "fairbench", symlinks=True)
    (tmp_path / "fairbench" / "__init__.py").write_text("__version__ = '0.9'\n")
    words, place = ["-P", "-m", "fairbench.cli.main", "--version"], str(tmp_path)
    error = python(*words, cwd=tmp_path, status=1, PYTHONPATH=place).stderr
    assert "is of another project called fairbench" in error.splitlines()[-1]
