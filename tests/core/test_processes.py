"""Freed memory stays with the process, where the system's library can be asked for that."""

import ctypes
import os
import platform
import resource
import subprocess
import sys
import threading
import time

import pytest

from fairbench.core.memory import MEMORY, keep_freed_memory
from fairbench.core.processes import GivenUpError, failure, in_time
from tests.harness import python, quick

# Pages that are asked for while an array comes and goes, without and with it.
_FAULTS = """
import resource
import numpy as np
from fairbench.core.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(1_000_000) + 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(), keep_freed_memory(), faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked")
def test_arrays_that_come_and_go_use_the_same_pages():
    given_back, asked, kept = python("-c", _FAULTS).stdout.split()
    assert asked == "True"
    assert int(kept) < int(given_back) / 4


@pytest.mark.parametrize("error", [OSError, TypeError, AttributeError])
def test_other_libraries_are_left_alone(monkeypatch, error):
    def none(name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", none)
    assert keep_freed_memory() is False


# A command takes no more memory than is allowed, and says in a line when there is too little.

GB = 2**30


def ended(code, *, limit=0, **environment):
    """Run Python code, and return its exit status and what it said last."""

    def limited():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
        env={**os.environ, **environment}, preexec_fn=limited,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.strip()


GREEDY = """
import sys
from types import SimpleNamespace
from fairbench.cli import main
greedy = SimpleNamespace(main=lambda words: len(bytearray(600 << 20)) * 0)
main._module_of = lambda verb: greedy
sys.argv = ["fairbench", "{}"]
sys.exit(main.main())
"""


@pytest.mark.parametrize(
    ("verb", "memory", "status"),
    quick(
        [("report", "0.2", 2), ("report", "2", 0), ("run", "0.2", 0)],
        [("report", "0.2", 2)],
        several=True,
    ),
)
def test_a_verb_takes_no_more_than_is_allowed_and_a_run_what_it_needs(verb, memory, status):
    code, said = ended(GREEDY.format(verb), **{MEMORY: memory})
    assert code == status
    assert ("FAIRBENCH_MAX_MEMORY=0.2 allows no more" in said) == (status == 2)
    assert len(said.splitlines()) <= 1


def test_too_little_address_space_is_said_before_anything_waits_for_it():
    code = "import sys; from fairbench.cli.main import main; sys.argv[1:] = ['report']; "
    said = "error: the address space is limited to 512 MB (ulimit -v), and fairbench needs 768 MB"
    assert ended(code + "sys.exit(main())", limit=GB // 2) == (2, f"{said} at least")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "limit", quick([0.85, 1.4, 1.5, 1.6, 1.7, 2.0], [1.5], rest=pytest.mark.slow)
)
def test_what_a_library_reserves_is_no_loss_where_address_space_is_limited(limit):
    """Arrow's own allocator takes a GB where it can; with 1.4 to 1.8 in all too little was left."""
    code = (
        "import sys; from fairbench.core.memory import limit_memory; "
        "limit_memory(fits=True); "
        "import pyarrow as pa, numpy as np, scipy.stats, pandas, sklearn.linear_model; "
        "pa.array(range(1000)); from matplotlib.backends import backend_agg; "
        "np.linalg.svd(np.ones((200, 200))); sys.exit(bytearray(50 << 20)[0])"
    )
    assert ended(code, limit=int(limit * GB), OPENBLAS_NUM_THREADS="1") == (0, "")


def test_errors_of_too_little_memory_are_told_from_others():
    for error in (MemoryError(), OSError(12, "Cannot allocate memory")):
        assert "more memory than there is" in failure(error)[0]
    assert "lack of memory or else: libx.so" in failure(ImportError("libx.so: failed to map"))[0]
    for other in (OSError(2, "No such file"), ModuleNotFoundError("no rich")):
        assert "memory" not in failure(other)[0]


def test_work_that_takes_ever_more_memory_is_given_up():
    kept = []

    def swelling(progress):
        while not progress.over:
            kept.append(b"x" * (4 << 20))

    with pytest.raises(GivenUpError, match=r"it takes more than 0\.1 GB of memory"):
        in_time(swelling, idle_s=30, total_s=30, most_bytes=100 << 20)


# Work that gets on is waited for, work that does not is given up, whatever it hangs in.


def test_what_work_returns_or_raises_comes_back_and_it_may_take_longer_than_a_step():
    def slowly(progress):
        for _ in range(6):
            time.sleep(0.1)
            progress()
        return "done"

    assert in_time(slowly, idle_s=0.5, total_s=30) == "done"
    with pytest.raises(KeyError, match="mine"):
        in_time(lambda progress: {}["mine"], idle_s=5, total_s=5)


@pytest.mark.thorough
def test_work_that_hangs_is_given_up_and_does_nothing_afterwards():
    freed, after = threading.Event(), []

    def hanging(progress):
        freed.wait(30)
        progress()
        after.append("went on")

    start = time.monotonic()
    with pytest.raises(GivenUpError, match="did not get on for 0 s"):
        in_time(hanging, idle_s=0.2, total_s=30)
    assert time.monotonic() - start < 5
    freed.set()
    for thread in threading.enumerate():
        if thread.daemon and thread is not threading.current_thread():
            thread.join(0.5)
    assert after == []


def test_what_preparing_took_counts_up_to_a_half():
    start = time.monotonic()
    with pytest.raises(GivenUpError, match="did not get on for 1 s"):
        in_time(lambda progress: time.sleep(1), idle_s=0.6, total_s=30, before_s=100)
    assert 0.3 <= time.monotonic() - start < 0.6


def test_work_that_drips_is_given_up_in_all():
    def dripping(progress):
        while True:
            time.sleep(0.05)
            progress()

    start = time.monotonic()
    with pytest.raises(GivenUpError, match="was not done after"):
        in_time(dripping, idle_s=5, total_s=0.5)
    assert time.monotonic() - start < 5
