"""What is installed is pinned, and what is fetched has one of the hashes that are listed."""

import re
import shlex
import tomllib
from importlib.metadata import requires

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.harness import ROOT

WHOLE, FIRST, TORCH = (
    ROOT / f"requirements{part}.lock" for part in ("", "-audit", "-torch")
)  # fmt: skip
PIN = r"[A-Za-z0-9_.\-\[\]]+==[\w.]+( ; [^#]+?)?( --hash=sha256:[0-9a-f]{64})+"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def entries(path):
    """Return the logical lines of a lock, without its comments."""
    text = re.sub(r"(?m)^#.*\n", "", path.read_text()).replace("\\\n", " ")
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def pinned(path):
    """Return the names of the packages that a lock pins, and their versions."""
    words = [Requirement(line.partition(" --hash")[0]) for line in entries(path) if "==" in line]
    return {canonicalize_name(word.name): str(word.specifier) for word in words}


@pytest.mark.parametrize("path", [WHOLE, FIRST], ids=["whole", "first"])
def test_every_requirement_is_pinned_and_has_a_hash(path):
    include, *rest = entries(path) if path == WHOLE else ["", *entries(path)]
    assert include in ("", f"-r {FIRST.name}")
    for line in rest:
        assert re.fullmatch(PIN, line), line[:80]


def test_the_locks_share_no_package_and_hold_what_extras_ask_for():
    first, whole = pinned(FIRST), pinned(WHOLE)
    assert not first.keys() & whole.keys()
    assert {"setuptools", "wheel"} <= first.keys()
    for text in PROJECT["optional-dependencies"]["benchmark"]:
        asked = Requirement(text)
        if asked.marker is None or asked.marker.evaluate():
            pin = (first | whole).get(canonicalize_name(asked.name))
            assert pin in (str(asked.specifier), None)


def test_the_first_lock_is_all_that_an_audit_needs():
    needed, waiting = set(), [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["audit"]]
    while waiting:
        asked = Requirement(waiting.pop())
        name = canonicalize_name(asked.name)
        if name in needed or (asked.marker and not asked.marker.evaluate({"extra": ""})):
            continue
        needed.add(name)
        waiting += requires(name) or []
    assert needed <= pinned(FIRST).keys()
    assert pinned(FIRST).keys() - needed == {"setuptools", "wheel"}


def pip_calls():
    """Yield the words of every call of pip of the project's own scripts."""
    for path in (*(ROOT / ".ci").iterdir(), ROOT / "Makefile"):
        for line in path.read_text().replace("\\\n", " ").splitlines():
            made = line.strip().startswith(("PIP :=", "pip =", "#", "@#"))
            if not made and re.search(
                r"\bpip (install|wheel|download)\b|\$\(PIP\)|call pip,", line
            ):
                yield line.strip()
    for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]:
        if "pip" in step["run"]:
            yield step["run"]


@pytest.mark.parametrize("line", list(pip_calls()))
def test_every_call_of_pip_fetches_what_has_a_hash_or_nothing(line):
    words = set(shlex.split(line.replace("@$(call pip,", "").rstrip(")")))
    no_build = "--only-binary=:all:" in words or "--no-build-isolation" in words
    if {"-r", TORCH.name} <= words:
        assert "--only-binary=:all:" in words  # the one package that is another for every device
    elif "--require-hashes" in words:
        assert "--no-deps" in words and no_build
    else:
        is_wheel = '"$wheel"' in line  # a file that was just built
        assert "--no-deps" in words and (is_wheel or "--no-build-isolation" in words)


def test_all_locks_are_installed_what_builds_first():
    makefile = (ROOT / "Makefile").read_text()
    order = re.findall(r"call pip,.*-r (\S+)\)", makefile)
    assert order == [FIRST.name, WHOLE.name, TORCH.name]
    (stamp,) = re.findall(r"(?m)^\$\(STAMP\): (.*)$", makefile)
    assert {path.name for path in (WHOLE, FIRST, TORCH)} < set(stamp.split())
