"""Disks that are full, without inodes or read-only, and outputs that nobody reads.

A line says what could not be written and the exit status is 2, or 1 for a sweep with its summary;
nothing half written and no temporary file is left.
"""

import contextlib
import os
import shutil
import subprocess

import pytest

from tests.harness import ROOT, command, fairbench, quick, ran, verb

pytestmark = pytest.mark.thorough

HERE = os.environ | {"PYTHONPATH": str(ROOT)}
RUN = ("dataset.n_samples=200", "split.repeats=1", "learner=gaussian_nb", "tracking=none")
ROWS = "label,score,group\n" + "".join(f"{i % 2},0.{i % 9},{'ab'[i % 3 == 0]}\n" for i in range(90))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a folder with a finished run, its figures left to be drawn, and a table."""
    cwd = tmp_path_factory.mktemp("finished")
    ran(*RUN, "figures=false", cwd=cwd)
    (cwd / "people.csv").write_text(ROWS)
    return cwd


@pytest.fixture
def disk(tmp_path, finished):
    """Return a function that makes a small disk with a copy of that folder, bad in some way."""
    place = tmp_path / "disk"
    mounted = []

    def make(kind):
        place.mkdir()
        options = "size=4m,nr_inodes=200"
        words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        if os.geteuid() != 0 or subprocess.run(words, capture_output=True).returncode != 0:
            pytest.skip("no disk can be mounted here")
        mounted.append(place)
        cwd = place / "cwd"
        shutil.copytree(finished, cwd)
        SPOILT[kind](place)
        return cwd

    yield make
    for mount in mounted:
        subprocess.run(["umount", "-l", str(mount)], check=True)


def fill(place):
    with contextlib.suppress(OSError), open(place / "full", "wb", buffering=0) as file:
        while True:
            file.write(b"0" * 4096)


def use_up_names(place):
    with contextlib.suppress(OSError):
        for number in range(200):
            (place / f"none{number}").touch()


def forbid(place):
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)


SPOILT = {"full": fill, "no inodes": use_up_names, "read-only": forbid}


def files(cwd):
    return {path: path.stat().st_size for path in cwd.rglob("*") if path.is_file()}


def refused(cwd, *words, status=2):
    """Give a command that cannot write; check its exit status and what it leaves; return a line."""
    before = files(cwd)
    done = fairbench(*words, cwd=cwd, status=status)
    assert "Traceback" not in done.stdout and files(cwd) == before
    return done.stderr.strip() or done.stdout


ASKED = ("people.csv", "target=label", "score=score", "group=group")
COMMANDS = {
    "run": ("run", *RUN, "seed=1"),
    "figures": ("run", *RUN),
    "report": ("report",),
    "audit": ("audit", *ASKED),
    "label": ("label", "next", "state=a.json", *ASKED),
}


@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_in_a_line_what_could_not_be_written(disk, kind, name):
    line = refused(disk(kind), *COMMANDS[name])
    assert line.startswith("error: ") and "\n" not in line
    if name == "run":
        reason = "Read-only file system" if kind == "read-only" else "No space left on device"
        assert "results/" in line and reason in line


@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize(
    "launcher",
    quick(["basic", "joblib", "submitit_local"], ["basic"], rest=pytest.mark.slow),
)
def test_a_sweep_has_its_summary(disk, kind, launcher):
    words = ("run", "-m", *RUN, "seed=1,2", f"hydra/launcher={launcher}")
    assert "0 runs finished, 0 skipped, 2 failed" in refused(disk(kind), *words, status=1)


@pytest.mark.parametrize("kind", SPOILT)
def test_what_only_reads_goes_on(disk, kind, finished):
    cwd = disk(kind)
    (run,) = (path.name for path in (finished / "results" / "runs").iterdir())
    assert run in fairbench("store", "ls", cwd=cwd).stdout
    assert "bit for bit" in fairbench("store", "verify", run, cwd=cwd).stdout
    assert "files:" in fairbench("table", run, cwd=cwd).stdout


def test_a_sweep_goes_on_when_nobody_reads(tmp_path):
    words = command("-m", *RUN, "figures=false", "seed=1,2,3")
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=-2) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=120) == 0
    assert len(list(tmp_path.glob("results/runs/*/environment.json"))) == 3


NO_ROOM = "error: standard output: No space left on device: make room there, and give the command"


@pytest.mark.parametrize(
    ("output", "status", "said"), [("/dev/full", 2, f"{NO_ROOM} again\n"), ("&-", 0, "")]
)
def test_an_output_that_is_not_whole_is_an_error_and_none_at_all_is_none(
    output, status, said, finished
):
    words = ["sh", "-c", f'exec "$@" >{output}', "sh", *verb("store", "ls")]
    done = subprocess.run(words, cwd=finished, env=HERE, stderr=-1, text=True)
    assert (done.returncode, done.stderr) == (status, said)
