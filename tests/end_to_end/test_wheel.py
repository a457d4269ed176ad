"""The wheel holds the library alone: arrays, audits and help without the checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from functools import partial

import pytest

from tests.audit.tables import predictions, written
from tests.harness import ROOT

USE = """
import fairbench
table = fairbench.evaluate(
    [0, 1, 1, 0] * 20, [0, 1, 0, 0] * 20, sensitive_features={"sex": list("ffmm") * 20},
    score=[0.1, 0.8, 0.4, 0.2] * 20,
)
found = table.query("metric == 'equalized_odds' and statistic == 'value'")
print(fairbench.__file__, found.value.item())
"""


@pytest.mark.thorough
def test_wheel_evaluates_arrays(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(ROOT / "fairbench", source / "fairbench")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    offline = ["--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*pip, "wheel", *offline, "-w", str(tmp_path), str(source)], check=True)
    (wheel,) = tmp_path.glob("fairbench_harness-*.whl")
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"fairbench"}
    site = tmp_path / "site"
    shutil.unpack_archive(wheel, site, "zip")
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=site, capture_output=True, text=True, check=True
    )
    place, value = done.stdout.split()
    assert place.startswith(str(site))
    assert float(value) == 1.0
    assert "fairbench = fairbench.cli.main:main" in entry_points(site)
    assert "[pytest11]\nfairbench = fairbench.cli.pytest_plugin" in entry_points(site)
    (tmp_path / "here").mkdir()
    run = partial(subprocess.run, cwd=tmp_path / "here", capture_output=True, text=True)
    environment = os.environ | {"PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "fairbench"]
    written(predictions(60), tmp_path / "here")
    words = ("audit", "predictions.csv", "target=label", "score=score", "group=sex")
    audited = run([*command, *words], env=environment)
    assert audited.returncode == 0, audited.stderr
    assert "written: predictions-audit/audit.html, audit.json" in audited.stdout
    assert (tmp_path / "here" / "predictions-audit" / "audit.html").is_file()
    for words in (("run", "dataset=german"), ("data", "check")):
        refused = run([*command, *words], env=environment)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"error: fairbench {words[0]}")
        assert "needs a checkout" in refused.stderr and refused.stderr.count("\n") == 1


def entry_points(site):
    (found,) = site.glob("*.dist-info/entry_points.txt")
    return found.read_text()
