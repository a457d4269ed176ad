"""Work that gets on is waited for, work that does not is given up, whatever it hangs in."""

import threading
import time

import pytest

from fairbench.core.deadline import GivenUpError, in_time


def test_what_work_returns_or_raises_comes_back():
    assert in_time(lambda progress: 3, idle_s=5, total_s=5) == 3
    with pytest.raises(KeyError, match="mine"):
        in_time(lambda progress: {}["mine"], idle_s=5, total_s=5)


def test_work_that_gets_on_may_take_longer_than_a_step():
    def slowly(progress):
        for _ in range(6):
            time.sleep(0.1)
            progress()
        return "done"

    assert in_time(slowly, idle_s=0.5, total_s=30) == "done"


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
