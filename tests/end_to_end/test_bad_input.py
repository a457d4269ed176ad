"""Bad input gets one sentence on standard error, exit status 2, and no traceback."""

import gzip

import pytest

from tests.harness import run_py

CASES = {
    "unknown dataset": (
        ["dataset=germn"],
        "error: unknown dataset 'germn': did you mean german? valid: ",
    ),
    "unknown method": (
        ["method=binomal_nll"],
        "error: unknown method 'binomal_nll': did you mean binomial_nll",
    ),
    "unknown option": (
        ["learner.max_dept=3"],
        "error: unknown option 'learner.max_dept': did you mean learner.max_depth or ",
    ),
    "unknown setting": (["sede=1"], "error: unknown option 'sede': did you mean seed or "),
    "unknown group": (["datset=adult"], "error: unknown option 'datset': did you mean dataset or "),
    "not a number": (
        ["learner.max_depth=deep"],
        "error: learner.max_depth is 'deep'; it must be a whole number\n",
    ),
    "not a fraction": (
        ["split.train=1.5"],
        "error: split.train is 1.5; it must be between 0 and 1\n",
    ),
    "no bag": (
        ["method=ensemble", "method.members=0"],
        "error: method.members is 0; it must be at least 1\n",
    ),
    "seed": (["seed=abc"], "error: seed is 'abc'; it must be a whole number\n"),
    "jobs": (["n_jobs=0"], "error: n_jobs is 0; it must be at least 1, or -1 for every core\n"),
    "method and task": (
        ["dataset=diabetes"],
        "error: method=binomial_nll needs a binary target, and dataset=diabetes is a regression: "
        "use method=",
    ),
    "learner and task": (
        ["dataset=diabetes", "method=baseline", "learner=logistic_regression"],
        "error: learner=logistic_regression needs a binary target, and dataset=diabetes is a "
        "regression: use learner=",
    ),
    "attribute": (
        ["protect=race"],
        "error: unknown sensitive attribute of simulated 'race': valid: group\n",
    ),
    "partition": (
        ["split=predefined"],
        "error: split=predefined needs a data set with its own test part; simulated has none: use "
        "split=holdout or split=kfold\n",
    ),
    "own table unnamed": (
        ["dataset=table"],
        "error: dataset=table needs dataset.path=FILE dataset.target=COLUMN "
        "dataset.sensitive=[COLUMN,...]\n",
    ),
    "data missing": (
        ["dataset=adult", "data.search_path=[nowhere]", "data.download=false"],
        "error: file adult/adult.data not found in nowhere, data, nor downloaded (downloading is "
        "off (data.download=false)). Get it from https://archive.ics.uci.edu/dataset/2/adult, and "
        "set data.search_path=[FOLDER] or FAIRBENCH_DATA=FOLDER so that FOLDER/adult/adult.data is "
        "it\n",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused_in_one_sentence(case, tmp_path):
    overrides, message = CASES[case]
    done = run_py(*overrides, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "results" / "cells").exists()


def test_data_missing_and_no_network(tmp_path):
    unreachable = {"https_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    done = run_py("dataset=german", "data.search_path=[nowhere]", cwd=tmp_path, **unreachable)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "error: file german/german.data not found in nowhere, data, nor downloaded ("
    )
    assert "no network" in last
    assert "https://archive.ics.uci.edu/dataset/144/" in last
    assert not list(tmp_path.rglob("german.data"))


@pytest.mark.parametrize("compressed", [False, True])
def test_corrupted_file_is_refused_and_left(tmp_path, compressed):
    content, folder = b"A11 6 A34\n", tmp_path / "raw" / "german"
    folder.mkdir(parents=True)
    file = folder / ("german.data.gz" if compressed else "german.data")
    file.write_bytes(gzip.compress(content) if compressed else content)
    done = run_py("dataset=german", "data.search_path=[raw]", cwd=tmp_path)
    assert done.returncode == 2
    assert f"error: raw/german/{file.name} has sha256 " in done.stderr
    assert "expected b21f3d81db8071257d5ff1deaeba1fd4" in done.stderr
    assert file.exists()
    forced = run_py("dataset=german", "data.search_path=[raw]", "data.verify=false", cwd=tmp_path)
    assert forced.returncode == 2
    assert "error: german/german.data: row 1 has 3 fields separated by ' ', expected 21" in (
        forced.stderr
    )
