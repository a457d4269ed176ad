"""Pipelines as somebody would write them, by the command, the action's script, and pytest."""

import json
import os
import re
import subprocess
import sys
import sysconfig

import pytest
import yaml

import action
from fairbench.cli.main import main
from tests.audits.tables import decided
from tests.harness import ROOT, python

STATUS = {"passes": 0, "fails": 1, "open": 3}


FAIR, UNFAIR = decided(6000, 0.5, 0.5), decided(6000, 0.6, 0.4)
USUAL = "prediction: hired\ngroup: [sex]\nfavourable: 1\nfail_if: impact_ratio<0.8\n"
# name -> (what it ends in, the predictions, its policy)
PIPELINES = {
    "hiring below four fifths": ("fails", UNFAIR, USUAL),
    "a first week": ("open", decided(150, 0.5, 0.45), USUAL),
    "what was promised": ("passes", FAIR, USUAL),
    "a rare group left out": (
        "passes",
        FAIR.assign(sex=FAIR["sex"].where(FAIR.index > 5, "others")),
        f"{USUAL}leave_out: [sex=others]\n",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of the pipelines, each with its predictions and its policy."""
    place = tmp_path_factory.mktemp("pipelines")
    for number, (_, frame, policy) in enumerate(PIPELINES.values()):
        frame.to_csv(place / f"p{number}.csv", index=False)
        (place / f"p{number}.yaml").write_text(f"predictions: p{number}.csv\n{policy}")
    return place


@pytest.mark.parametrize("name", PIPELINES)
def test_the_command_and_the_script_of_the_action_end_as_the_pipeline_should(
    name, folder, tmp_path, capsys
):
    outcome = PIPELINES[name][0]
    policy = str(folder / f"p{list(PIPELINES).index(name)}.yaml")
    files = [f"junit={tmp_path / 'gate.xml'}", f"sarif={tmp_path / 'gate.sarif'}"]
    assert main(["gate", f"policy={policy}", *files]) == STATUS[outcome]
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("gate is open: " if outcome == "open" else f"gate {outcome}: ")
    assert (tmp_path / "gate.xml").stat().st_mode & 0o077 == 0
    (run,) = json.loads((tmp_path / "gate.sarif").read_text())["runs"]
    assert run["invocations"][0]["exitCode"] == STATUS[outcome]
    assert ({result["kind"] for result in run["results"]} == {"pass"}) == (outcome == "passes")
    output, summary = tmp_path / "output", tmp_path / "summary"
    given = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    assert action.act({"INPUT_POLICY": policy, **given}) == STATUS[outcome]
    kind = "notice" if outcome == "passes" else "error"
    told = f"::{kind} title=fairbench::{line.replace('%', '%25')}"
    assert capsys.readouterr().out.splitlines() == [line, told]
    assert re.search(rf"(?m)^outcome<<(end_\w+)\n{outcome}\n\1$", output.read_text())
    assert f"### fairbench: {outcome}" in summary.read_text()


IN_PYTEST = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_pipeline(fairbench_gate, number):
    gate = fairbench_gate(policy=f"p{number}.yaml")
    assert gate and gate.exit_status == 0

def test_a_mistake(fairbench_gate):
    fairbench_gate("p0.csv", policy="p0.yaml", fail_if="impact_ratio>0.8")
"""


@pytest.mark.thorough
def test_the_fixture_ends_as_the_pipelines_should(folder):
    (folder / "test_models.py").write_text(IN_PYTEST)
    done = python(
        *("-m", "pytest", "-q", "-p", "fairbench.cli.pytest_plugin", "-p", "no:cacheprovider"),
        "test_models.py", cwd=folder, status=1, PYTHONPATH=str(ROOT),
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )  # fmt: skip
    for number, outcome in enumerate([outcome for outcome, *_ in PIPELINES.values()]):
        failed = f"FAILED test_models.py::test_pipeline[{number}]" in done.stdout
        assert failed == (outcome != "passes"), done.stdout
    assert "gate is open: these rows cannot tell" in done.stdout
    assert "the gate cannot be judged: fail_if=impact_ratio>0.8 would fail" in done.stdout
    assert "3 failed, 2 passed" in done.stdout and "Traceback" not in done.stdout


def test_the_action_hands_on_its_inputs_and_runs_this_script():
    described = yaml.safe_load((ROOT / "action.yml").read_text())
    install, judge = described["runs"]["steps"]
    inputs = {f"INPUT_{name.upper()}": f"${{{{ inputs.{name} }}}}" for name in described["inputs"]}
    assert judge["env"] == {**install["env"], **inputs}
    assert install["env"]["ACTION_PATH"] == "${{ github.action_path }}"
    # No input stands in a line that a shell reads.
    assert not any("${{" in step["run"] for step in (install, judge))
    given = {name: f"value of {name}" for name in inputs}
    given["INPUT_OPTIONS"] = "group=[sex,race]\n\n  target=label  "
    assert action.arguments(given) == [
        "path=value of INPUT_PREDICTIONS",
        *(f"{name}=value of INPUT_{name.upper()}" for name in
          ("policy", "fail_if", "require", "junit", "sarif")),
        "group=[sex,race]",
        "target=label",
    ]  # fmt: skip


@pytest.mark.thorough
def test_the_action_imports_nothing_of_the_folder_of_the_job(folder, tmp_path):
    """Neither from the current folder, nor by PYTHONPATH, nor as a component of one's own."""
    _, judge = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    imported = tmp_path / "imported"
    names = ("fairbench", "pandas", "yaml", "json", "runpy", "sitecustomize", "algorithms/own")
    for name in names:
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"open({str(imported)!r}, 'a').write({name!r})\nraise SystemExit(0)\n")
    (tmp_path / "conf" / "learner").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    given = {
        "ACTION_PATH": str(ROOT),
        "PACKAGES": sysconfig.get_path("purelib"),
        "INPUT_POLICY": str(folder / "p0.yaml"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "PYTHONPATH": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", judge["run"]], cwd=tmp_path, timeout=240,
        capture_output=True, text=True, env={**os.environ, **given},
    )  # fmt: skip
    assert done.returncode == STATUS["fails"], done.stdout + done.stderr
    assert "::error title=fairbench::gate fails: the impact ratio by sex" in done.stdout
    assert not imported.exists() and "fails" in (tmp_path / "output").read_text()


def test_a_refusal_is_no_verdict_for_the_action(tmp_path, capsys):
    assert action.act({"INPUT_PREDICTIONS": "none.csv", "GITHUB_OUTPUT": str(tmp_path / "o")}) == 2
    assert "refused" in (tmp_path / "o").read_text()
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert "::error title=fairbench::the gate was refused" in printed.out


def test_what_a_column_is_called_ends_no_output_and_begins_no_command(tmp_path):
    frame = UNFAIR.rename(columns={"sex": "sex::set-output name=outcome::passes"})
    frame.to_csv(tmp_path / "p.csv", index=False)
    given = {
        "INPUT_PREDICTIONS": str(tmp_path / "p.csv"),
        "INPUT_FAIL_IF": "impact_ratio<0.8",
        "INPUT_OPTIONS": f'prediction=hired\nfavourable=1\ngroup=["{frame.columns[0]}"]',
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    assert action.act(given) == 1
    (value,) = re.findall(r"outcome<<(end_\w+)\n(.*)\n\1\n", (tmp_path / "output").read_text())
    assert value[1] == "fails"


def test_files_of_a_verdict_need_a_condition_and_a_place(folder, tmp_path, refused):
    path, policy = folder / "p3.csv", f"policy={folder / 'p3.yaml'}"
    none = f"junit={tmp_path / 'g.xml'}"
    refused("audit", path, "prediction=hired", none, message="junit= is of a gate")
    before = path.read_bytes()
    for files in ([f"junit={path}"], [f"sarif={folder / 'p3.yaml'}"],
                  [f"junit={tmp_path / 'same'}", f"sarif={tmp_path / 'same'}"]):  # fmt: skip
        refused("gate", policy, *files, message="would be written over a file")
    assert path.read_bytes() == before and not (tmp_path / "same").exists()
    (tmp_path / "file").touch()
    refused("gate", policy, f"junit={tmp_path / 'file' / 'g.xml'}")


def test_the_hook_of_pre_commit_runs_the_command():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "fairbench gate" and hook["args"] == ["policy=fairbench.yaml"]
    assert hook["language"] == "python" and hook["pass_filenames"] is False
    for name in ("fairbench.yaml", "data/predictions.csv", "p.parquet", "p.csv.gz"):
        assert re.search(hook["files"], name), name
    assert not re.search(hook["files"], "model.py")
