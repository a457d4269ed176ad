"""Bad input gets one sentence on standard error, exit status 2, and no traceback."""

import os

import pytest

from fairbench.results.runs import Run
from tests.harness import TINY, fairbench, ran, run_py

CASES = [
    ("-m dataset=simulated,germn", "unknown dataset 'germn': did you mean german"),
    ("learner.max_dept=3", "unknown option 'learner.max_dept': did you mean learner.max_depth?\n"),
    ("datset=adult", "unknown option 'datset': did you mean dataset?\n"),
    ("learner.max_depth=deep", "learner.max_depth is 'deep'; it must be a whole number\n"),
    ("split.train=1.5", "split.train is 1.5; it must be between 0 and 1\n"),
    ("method=ensemble method.members=0", "method.members is 0; it must be at least 1\n"),
    ("seed=abc", "seed is 'abc'; it must be a whole number\n"),
    ("dataset.seed=-1", "dataset.seed is -1; it must be at least 0\n"),
    (f"seed={2**63}", f"seed is {2**63}; it must be at most {2**63 - 1}\n"),
    ("protect=false", "protect is 'False'; it must be the"),
    ("protect=[0]", "protect is '[0]'; it must be the"),
    ("protect={group:1}", "protect is \"{'group': 1}\"; it must be the"),
    (
        "-m seed=range(100000) plan=true",
        "plan=true of 100,000 jobs would take long, as each is prepared: it takes up to 10,000; "
        "plan a part of them, such as one seed, and multiply\n",
    ),
    (
        "-m seed=range(100000000000)",
        "a sweep has up to 1,000,000 jobs, and this one has 1,000,001 or more\n",
    ),
    ("-m split.train=2.0 method=baseline,ensemble", "all 2 jobs of this sweep: split.train is 2.0"),
    ("n_jobs=0", "n_jobs is 0; it must be at least 1, or -1 for every core\n"),
    ("dataset=diabetes", "method=binomial_nll needs a binary target or one of several classes, "),
    ("protect=race", "unknown sensitive attribute of simulated 'race'; valid: group\n"),
    (
        "split=predefined",
        "split=predefined needs a data set with its own test part; simulated has none: use "
        "split=holdout or split=kfold\n",
    ),
    (
        "dataset=table",
        "dataset=table needs dataset.path=FILE dataset.target=COLUMN "
        "dataset.sensitive=[COLUMN,...]\n",
    ),
    (
        "dataset=adult data.search_path=[nowhere] data.download=false",
        "the raw file adult/adult.data is missing. It is in none of these folders: nowhere, "
        "data. It was not downloaded: downloading is off (data.download=false). Get it from "
        "https://archive.ics.uci.edu/dataset/2/adult, save it as FOLDER/adult/adult.data, and name "
        "that folder by data.search_path=[FOLDER] or by the environment variable FAIRBENCH_DATA\n",
    ),
]


@pytest.mark.parametrize(("words", "message"), CASES, ids=[case[0] for case in CASES])
def test_is_refused_in_one_sentence(words, message, tmp_path):
    done = run_py(*words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {message}")
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "results" / "cells").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("date", ["abc", "", "-1", "1e9", "123456789012"])
def test_a_date_that_is_no_number_is_refused_before_any_library_reads_it(date, tmp_path):
    said = f"error: SOURCE_DATE_EPOCH is '{date}'; it must be a whole number of seconds since 1970"
    run = run_py(*TINY, cwd=tmp_path, SOURCE_DATE_EPOCH=date)
    page = fairbench("report", cwd=tmp_path, status=2, SOURCE_DATE_EPOCH=date)
    for done in (run, page):
        assert (done.returncode, done.stderr) == (2, f"{said}: unset it\n")


@pytest.mark.thorough
def test_a_name_that_is_no_utf_8_is_shown_escaped(tmp_path):
    """Of the results folder, of a file or a folder in it, and of a file that is written."""
    run_py(*TINY, "learner=gaussian_nb", cwd=tmp_path)
    odd = (tmp_path / "results").rename(tmp_path / os.fsdecode(b"odd\xff"))
    name = os.fsdecode(b"x\xff\x1b[31m")
    for part in ("runs", "cells", "data", "splits"):
        (odd / part / name).touch()
        (odd / part / f"{name}.d").mkdir()
    (run,) = (path.name for path in (odd / "runs").iterdir() if path.name.isalnum())
    shown = r"odd\udcff"
    verbs = (["store", "ls"], ["store", "gc"], ["table", run], ["table", run, f"out={name}.csv"],
             ["report"], ["audit", run], ["sync"], ["store", "verify", run])  # fmt: skip
    for words in verbs:
        done = fairbench(*words, f"results={odd.name}", cwd=tmp_path)
        assert "\x1b" not in done.stdout and odd.name not in done.stdout
        assert shown in done.stdout or words[0] == "store" or len(words) > 2
    assert (tmp_path / f"{name}.csv").is_file()
    refused = run_py(*TINY, f"results={odd.name}", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: 'results={shown}' was not understood")


def ricci(rows):
    """Return a file of the data set's form, whose checksum is another."""
    lines = ["Position,Oral,Written,Race,Combine"]
    for i in range(rows):
        oral, written = 50 + i * 7 % 45, 50 + i * 11 % 45
        place, race = ("Captain", "Lieutenant")[i % 2], "WBH"[i % 3]
        lines.append(f"{place},{oral},{written},{race},{0.6 * written + 0.4 * oral:g}")
    return "\n".join(lines) + "\n"


@pytest.mark.thorough
def test_a_run_of_unverified_files_is_marked_wherever_it_is_shown(tmp_path):
    raw = tmp_path / "raw" / "ricci" / "ricci.csv"
    raw.parent.mkdir(parents=True)
    raw.write_text(ricci(120))
    place = {"FAIRBENCH_DATA": str(tmp_path / "raw")}
    words = ("dataset=ricci", "learner=gaussian_nb", "split.repeats=1", "tracking=none")
    assert run_py(*words, cwd=tmp_path, **place).returncode == 2
    ran(*words, "data.verify=false", "figures=false", cwd=tmp_path, **place)
    (run,) = (tmp_path / "results" / "runs").iterdir()
    assert Run(run).config["dataset"]["verified"] is False
    assert "dataset=ricci-unverified" in fairbench("store", "ls", cwd=tmp_path).stdout
    assert "0 finished runs" in fairbench("store", "ls", "dataset=ricci", cwd=tmp_path).stdout
    shown = fairbench("store", "show", run.name, cwd=tmp_path).stdout
    assert "not verified (data.verify=false)" in shown
    fairbench("report", cwd=tmp_path)
    page = (tmp_path / "results" / "report" / "index.html").read_text()
    assert all(said in page for said in ("ricci-unverified", "data.verify=false"))
    again = fairbench("store", "verify", run.name, cwd=tmp_path, **place)
    assert "bit for bit" in again.stdout


@pytest.mark.thorough
def test_what_has_no_checksum_is_not_marked(tmp_path):
    for words in ((), ("data.verify=false",)):
        done = ran(*TINY, "figures=false", *words, cwd=tmp_path)
    assert "nothing to fit" in done.stdout
    (run,) = (tmp_path / "results" / "runs").iterdir()
    assert "verified" not in Run(run).config["dataset"]
