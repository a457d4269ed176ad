"""Damaged files, killed sweeps, and one command in several containers: the trials, in small."""

import shutil
import subprocess

import pytest

from benchmarks.faults import flips, kills, names, namespaces


@pytest.mark.thorough
def test_no_damage_is_believed_and_what_can_be_is_made_again():
    total = flips.flips(60)
    damaged = [total[kind.name, "damaged"] for kind in flips.KINDS]
    assert sum(damaged) == 60
    assert all(damaged)
    assert flips.whole(total), total


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["joblib", "local"])
def test_a_sweep_that_is_killed_beside_other_commands_ends_as_if_it_was_not(kind):
    assert kills.main(kind, sweeps=1, rounds=5, kills=2)


@pytest.mark.slow
def test_one_command_in_three_containers_at_once_fits_each_cell_once():
    if not shutil.which("unshare") or subprocess.run([*namespaces.APART, "true"]).returncode:
        pytest.skip("no right to make namespaces")
    assert namespaces.main(1)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of packages, in this very process
def test_no_kind_of_name_leads_out_of_a_folder_or_stops_a_command():
    assert names.main(100)
