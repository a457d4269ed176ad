"""A state is for who keeps it; a link to a state that several people share stays one."""

import json
import os
import stat

import pytest

from fairbench.core.errors import UserError, warn
from fairbench.core.files import unsealed_json
from fairbench.core.state_file import JsonFile


class Counts(JsonFile[int]):
    """A number in a file."""

    of, start, otherwise = "a count", "count", "or count anew"

    def parse(self, content):
        return int(unsealed_json(content)["count"])

    def values(self, state):
        return {"count": state}


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_state_is_for_who_made_it(tmp_path):
    counts = Counts(tmp_path / "state.json")
    counts.create(1)
    counts.change(lambda count: count + 1)
    assert counts.read() == 2
    assert mode(counts.path) == 0o600


def test_a_state_that_others_read_stays_so_and_that_is_said(tmp_path, capsys):
    warn.cache_clear()
    counts = Counts(tmp_path / "state.json")
    counts.create(1)
    counts.path.chmod(0o644)
    counts.change(lambda count: count + 1)
    assert mode(counts.path) == 0o644
    assert "may be read by others: chmod 600 it" in capsys.readouterr().err


def test_a_link_to_a_state_that_is_shared_stays_a_link(tmp_path):
    (tmp_path / "shared").mkdir()
    shared, mine = Counts(tmp_path / "shared" / "state.json"), Counts(tmp_path / "mine.json")
    shared.create(1)
    mine.path.symlink_to(shared.path)
    mine.change(lambda count: count + 1)
    assert mine.path.is_symlink()
    assert shared.read() == mine.read() == 2


@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", ["pipe", "endless", "other"])
def test_what_is_no_state_is_refused_at_once(tmp_path, kind):
    counts = Counts(tmp_path / "state.json")
    if kind == "pipe":
        os.mkfifo(counts.path)
    elif kind == "endless":
        counts.path.symlink_to("/dev/zero")
    else:
        counts.path.write_text(json.dumps({"count": 1}))
    with pytest.raises(UserError, match="is not the state of a count"):
        counts.read()


def test_a_lock_that_is_not_ours_is_neither_written_over_nor_removed(tmp_path):
    counts = Counts(tmp_path / "state.json")
    (tmp_path / ".state.json.lock").write_text("mine")
    with pytest.raises(UserError, match="no lock of fairbench"):
        counts.create(1)
    assert (tmp_path / ".state.json.lock").read_text() == "mine"


def test_a_state_names_files_of_its_own_folder_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "rows.csv").write_text("y\n1\n")
    (tmp_path / "mine" / "link.csv").symlink_to(tmp_path / "rows.csv")
    counts = Counts(tmp_path / "mine" / "state.json")
    inner = tmp_path / "mine" / "parts" / "rows.csv"
    assert counts.path_in_folder(inner) == inner
    for name in ("../rows.csv", "link.csv", "/etc/passwd", "parts/../../rows.csv", "a\0b"):
        with pytest.raises(UserError, match="outside of its folder"):
            counts.path_in_folder(counts.folder / name)
