"""Damaged packs are never believed, lose only what is damaged, and say what that is."""

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.core.files import unsealed_json
from fairbench.results import pack_file, packing
from fairbench.results.catalogue import Catalogue
from fairbench.results.cells import CorruptCellError, Store
from fairbench.results.packs import damages, open_pack, without_index
from fairbench.results.predictions import _rows
from tests.results.small_packs import RUNS, contents, packed, refused, small_folder


@pytest.fixture
def folder(tmp_path, make_dataset):
    return small_folder(tmp_path / "mine", make_dataset())


def test_every_flipped_byte_is_found_and_what_is_lost_is_named(folder):
    pack = packed(folder)
    whole, draw = contents(pack), np.random.default_rng(0)
    expected = {run.id: run.all_metrics() for run in Catalogue(pack)}
    for name in sorted(whole):
        for place in (0, *draw.integers(len(whole[name]), size=4), len(whole[name]) - 1):
            damaged = bytearray(whole[name])
            damaged[place] ^= 1 << int(draw.integers(8))
            (pack / name).write_bytes(damaged)
            if name == "pack.json":
                with pytest.raises(UserError, match="pack.json is missing or damaged"):
                    open_pack(pack)
                continue
            result = list(damages(_fresh(pack)))
            assert result
            assert all(str(pack / name) in line or "run " in line for line in result)
            _believed(pack, expected)
        (pack / name).write_bytes(whole[name])
    assert not list(damages(_fresh(pack)))


def _fresh(pack):
    _rows.cache_clear()
    (pack / "pack.json").touch()
    return open_pack(pack)


def _believed(pack, expected):
    """Nothing is read that is not as it was written."""
    try:
        runs = list(Catalogue(pack))
    except UserError:
        return
    for run in runs:
        try:
            result = run.all_metrics()
        except UserError as error:
            assert "is missing or damaged" in str(error)
        else:
            pd.testing.assert_frame_equal(result, expected[run.id])


def test_a_damaged_file_loses_what_is_in_it_alone(folder, monkeypatch, capsys):
    whole = list(Catalogue(packed(folder)))
    monkeypatch.setattr(pack_file, "MOST_TABLES", 2)
    pack = packed(folder, "split")
    for name in ("runs-1-002", "metrics-1-001", "cells-1-001"):
        with open(pack / f"{name}.parquet", "r+b") as file:
            file.truncate(1000)
    mine, store = Catalogue(_fresh(pack).path), Store(pack)
    assert list(mine.runs) == list(RUNS[:2])  # the third stood in runs-1-002
    assert f"runs are left out: {pack / 'runs-1-002.parquet'}" in capsys.readouterr().err
    pd.testing.assert_frame_equal(mine.one(RUNS[1]).summary(), whole[1].summary())
    with pytest.raises(UserError, match="metrics-1-001.parquet is missing or damaged"):
        mine.one(RUNS[1]).all_metrics()
    assert store.read("b1").columns["sd"].tolist() == [1.0] * 5  # of another series, between those
    with pytest.raises(CorruptCellError, match="cells-1-001.parquet is missing or damaged"):
        store.read("a1")


def test_runs_of_a_damaged_row_group_are_left_out_by_name(folder, monkeypatch, capsys):
    monkeypatch.setattr(packing, "_OF_RUNS", 1)
    pack = packed(folder)
    path = pack / "runs-1-001.parquet"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    assert list(Catalogue(pack).runs) == list(RUNS[1:])
    said = capsys.readouterr().err
    assert f"left out of {pack}: {RUNS[0]} (runs: 1), whose records are damaged" in said


def test_what_is_whole_is_unpacked_and_what_is_lost_is_named(folder, capsys):
    pack, out = packed(folder), folder.with_name("unpacked")
    (pack / "cells-2-001.parquet").unlink()
    assert run_command(["store", "unpack", str(pack), f"out={out}"]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("3 runs and 4 cells")
    assert second.startswith(f"damaged: {pack / 'cells-2-001.parquet'} is missing")
    assert Store(out).has("a1")
    assert not Store(out).has("b1")
    pd.testing.assert_frame_equal(
        Catalogue(out).one(RUNS[0]).all_metrics(), Catalogue(folder).one(RUNS[0]).all_metrics()
    )


@pytest.mark.parametrize("change", [lambda text: text.replace("3,", "8,"), None])
def test_a_damaged_index_is_refused_and_verify_says_which_files_are_whole(folder, capsys, change):
    pack = packed(folder)
    index, name = pack / "pack.json", "metrics-1-001.parquet"
    if change:
        index.write_text(change(index.read_text()))
    else:
        index.unlink()
    said = refused("ls", f"results={pack}")
    assert said.startswith(f"{index} is missing or damaged, and nothing of the pack is read")
    content = bytearray((pack / name).read_bytes())
    content[9] ^= 1
    (pack / name).write_bytes(content)
    assert run_command(["store", "verify", str(pack)]) == 1
    lines = dict(
        line.rpartition("/")[2].split(": ", 1) for line in capsys.readouterr().out.split("\n")[1:-1]
    )
    unknown = "" if change else ", by what it says of itself, which the index no longer confirms"
    assert lines.pop(name).startswith(f"3 of 3 tables are lost: {RUNS[0]}")
    assert set(lines) == {path.name for path in pack.glob("*.parquet")} - {name}
    assert set(lines.values()) == {f"whole{unknown}"}


def test_a_footer_that_the_damaged_index_does_not_name_is_not_called_whole(folder):
    pack = packed(folder)
    index, path = pack / "pack.json", pack / "metrics-1-001.parquet"
    sums = unsealed_json(index.read_bytes())["files"][path.name]["sums"][2]
    index.write_text(index.read_text().replace(sums, f"0{sums[1:]}"))
    (line,) = [line for line in without_index(pack) if str(path) in line]
    assert "which the index no longer confirms" in line


def test_verify_prints_what_is_lost(folder, capsys):
    pack = packed(folder)
    assert run_command(["store", "verify", str(pack)]) == 0
    assert "3 runs and 7 cells are as they were written" in capsys.readouterr().out
    (pack / "metrics-1-001.parquet").unlink()
    (pack / "stray").touch()
    assert run_command(["store", "verify", f"results={pack}"]) == 1
    said = capsys.readouterr().out
    assert f"metrics-1-001.parquet: it is missing: 3 metrics, {RUNS[0]} to {RUNS[2]}" in said
    assert f"run {RUNS[1]} has no metrics" in said
    assert "stray: no file of the pack" in said
