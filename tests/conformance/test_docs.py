"""The documentation: pages are linked, their code runs, and the site is built without a warning."""

import doctest
import importlib
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

from tests.audits.tables import predictions
from tests.harness import ROOT, quick

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("howto/*.md")])
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "fairbench").rglob("*.py")
    if ">>>" in path.read_text()
)
WITH_CODE = [
    path for path in [ROOT / "README.md", *PAGES] if "```python" in path.read_text(encoding="utf-8")
]
EXAMPLES = {path.read_text(encoding="utf-8") for path in DOCS.glob("examples/*/*.py")}
# What stands in for data that a test does not have.
SMALL = {
    '"dataset=adult", "method=ensemble"': (
        '"dataset.n_samples=200", "split.repeats=1", "method=baseline", "figures=false", '
        '"tracking=none"'
    ),
    'dataset="adult"': 'dataset="simulated"',
}


def test_every_lesson_is_named_where_to_begin():
    lessons = {path.stem for path in DOCS.glob("tutorials/*.py")}
    text = (DOCS / "index.md").read_text()
    assert set(re.findall(r"generated/tutorials/(plot_\w+)", text)) == lessons


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_say_what_comes_out(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("path", quick(WITH_CODE, WITH_CODE[:1]), ids=lambda path: path.stem)
def test_python_code_of_pages_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    frame = predictions(120, labels=120).assign(income=np.arange(120))
    names = {
        "frame": frame,
        "target": frame["label"],
        "prediction": (frame["score"] > 0.5).astype(int),
        **{name: frame[name] for name in ("score", "sex", "race")},
    }
    text = path.read_text(encoding="utf-8")
    if "import mlflow" in text:  # which warns of itself as it is imported
        warnings.simplefilter("ignore")
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        if code in EXAMPLES:  # tests of the examples run these
            continue
        for asked, small in SMALL.items():
            code = code.replace(asked, small)
        exec(compile(code, str(path), "exec"), names)


@pytest.mark.thorough
def test_the_site_is_built_without_a_warning(tmp_path):
    words = ("-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path / "site"))
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words], cwd=ROOT, capture_output=True, text=True,
        timeout=280, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    page = (tmp_path / "site/generated/tutorials/plot_1_audit_your_model.html").read_text()
    assert "fairbench-report" in page and "sphx-glr-single-img" in page
    for html in (tmp_path / "site").rglob("*.html"):
        assert not re.search(r'<(script|link|img)[^>]+(src|href)="https?://', html.read_text())
