"""Freed memory stays with the process, where the system's library can be asked for that."""

import ctypes
import platform
import subprocess
import sys

import pytest

from fairbench.core import memory

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
    command = [sys.executable, "-c", _FAULTS]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    given_back, asked, kept = printed.split()
    assert asked == "True"
    assert int(kept) < int(given_back) / 4


@pytest.mark.parametrize("error", [OSError, TypeError, AttributeError])
def test_other_libraries_are_left_alone(monkeypatch, error):
    def none(name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", none)
    assert memory.keep_freed_memory() is False
