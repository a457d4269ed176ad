"""Packs are the same bytes, come back as they were, and are refused where a bit is another."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from benchmarks.stored import configured, pack_of, run_of
from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.core.files import sealed, sealed_json, unsealed_json
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import LAST, TABLES, RunWriter, Store
from fairbench.results.upkeep import MANIFEST, pack, unpack
from tests.results.test_run_folder import METRICS, WRITTEN
from tests.studies import RECORD

_SEVERAL = (configured(RECORD, {"learner.rate": 1e-5, "seed": seed}) for seed in range(3))
RECORDS = sorted(_SEVERAL, key=run_of)
RUNS = [run_of(record) for record in RECORDS]
CELLS = 7


def write(folder, number, data, seed=0):
    """Write one of `RUNS` with three cells, one of them shared by all."""
    cells, record = [f"a{number}", f"b{number}", "shared"], RECORDS[number]
    for cell in cells:
        columns = {"row": np.arange(5, dtype=np.int32), "score": np.float32([len(cell)] * 5) / 3}
        Store(folder).write(cell, columns, {"fit_seconds": 0.1 * seed, "text": "é"})
    metrics = METRICS.assign(value=np.random.default_rng(seed).random(len(METRICS)))
    tables = WRITTEN | {"metrics": metrics, "summary": metrics}
    RunWriter(folder / "runs" / RUNS[number]).write(record["config"], cells, tables, data, record)
    os.utime(folder / "runs" / RUNS[number] / LAST, (1e9 + number, 1e9 + number))


@pytest.fixture
def folder(tmp_path, make_dataset):
    for number in range(len(RUNS)):
        write(tmp_path / "mine", number, make_dataset(), number)
    return tmp_path / "mine"


@pytest.fixture
def packed(folder):
    file = folder.with_name("mine.zip")
    pack(list(Catalogue(folder)), file, people=True)
    return file


def contents(folder):
    """Return what is in a folder, but for its index and locks, and when runs were finished."""
    return {
        path.relative_to(folder).as_posix(): (
            path.read_bytes(), path.name == LAST and path.stat().st_mtime_ns
        )
        for path in folder.rglob("*")
        if path.is_file() and path.name != "index.json" and "locks" not in path.parts
    }  # fmt: skip


def test_what_is_unpacked_is_what_was_packed_and_packs_to_the_same_bytes(folder, packed):
    out = folder.with_name("out")
    assert unpack(packed, out) == (3, CELLS)
    assert contents(out) == contents(folder)
    assert unpack(packed, out) == (0, 0)
    again = folder.with_name("again.zip")
    pack(list(Catalogue(out)), again, people=True)
    assert again.read_bytes() == packed.read_bytes()
    one, other = Catalogue(folder).one(RUNS[0]), Catalogue(out).one(RUNS[0])
    pd.testing.assert_frame_equal(one.predictions(), other.predictions())
    assert {stat.S_IMODE(path.stat().st_mode) for path in (out / "data").iterdir()} == {0o600}
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600
    with zipfile.ZipFile(packed) as archive:  # any program reads it
        archive.extractall(folder.with_name("plain"))
    assert len(Catalogue(folder.with_name("plain"))) == 3


def test_the_verbs_say_what_they_did_and_left_out(folder, capsys):
    file = folder.with_name("mine.zip")
    run_command(["store", "pack", str(folder), "seed=0,1", "cells=false"])
    said = " ".join(capsys.readouterr().out.split())
    assert f"{file}: 2 runs and 0 cells" in said
    assert "left out, since they may not be given away: target and groups of toy" in said
    run_command(["store", "unpack", str(file), f"out={folder.with_name('out')}"])
    assert "2 runs and 0 cells" in capsys.readouterr().out
    with pytest.raises(UserError, match="is missing or damaged"):
        next(iter(Catalogue(folder.with_name("out")))).people()


def test_a_flipped_bit_at_any_place_is_found_and_nothing_is_written(packed, tmp_path):
    whole = packed.read_bytes()
    # All over the file, and each byte of the sum at its end and of what tells that it is there.
    for at in (*range(0, len(whole), len(whole) // 60), *range(len(whole) - 90, len(whole))):
        packed.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(UserError, match="is no whole pack"):
            unpack(packed, tmp_path / "out")
    for cut in (b"", whole[:1], whole[:100], whole[: len(whole) // 2], whole[:-1], whole + b"\0"):
        packed.write_bytes(cut)
        with pytest.raises(UserError, match="is no whole pack"):
            unpack(packed, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def entry(mode=0, method=zipfile.ZIP_STORED):
    result = zipfile.ZipInfo(CELL)
    result.external_attr, result.compress_type = mode << 16, method
    return [(result, b"/etc/passwd")]


def manifest(**changed):
    own = {"path": CELL, "bytes": 1, "sha256": "1" * 64}
    return {"format": "fairbench pack", "version": 2, "files": [own], "written": {}} | changed


CELL, RECORD_FILE = "cells/ab/ab.parquet", f"runs/{RUNS[0]}/{LAST}"
OF_ONE = [(CELL, b"x")]
HOSTILE = {
    "absolute": ([("/etc/x", b"")],),
    "up": ([("runs/../../x", b"")],),
    "up in a run": ([(f"runs/{RUNS[0]}/../{RUNS[0]}/{LAST}", b"")],),
    "backslashes": ([("cells\\ab\\ab.parquet", b"")],),
    "an escape": ([("cells/ab/\x1b[2J.parquet", b"")],),
    "a zero byte": ([(f"{CELL}\0.sh", b"")],),
    "another folder": ([("cells/xy/ab.parquet", b"")],),
    "a folder": ([("cells/ab/", b"")],),
    "another kind": ([("locks/folder.lock", b"")],),
    "figures": ([(f"runs/{RUNS[0]}/figures/a.png", b"")],),
    "a link": (entry(stat.S_IFLNK | 0o777),),
    "another packing": (entry(method=zipfile.ZIP_LZMA),),
    "a run without a record": ([(f"runs/{RUNS[0]}/metrics.parquet", b"")],),
    "a record that is none": ([(RECORD_FILE, b"{}")],),
    "a record that is none, sealed": ([(RECORD_FILE, sealed_json({}).encode())],),
    "a name twice": ([(CELL, b"a"), (CELL, b"b")], None, "a file is there twice"),
    "two manifests": ([(MANIFEST, b"{}")], None, "a file is there twice"),
    "a later version": (
        [], manifest(version=3, files=[]),
        "is a pack of version 3, and this fairbench reads version 2: update it",
    ),
    "a list": (OF_ONE, []),
    "a manifest without files": (OF_ONE, {"format": "fairbench pack"}),
    "another format": (OF_ONE, manifest(format="other")),
    "a file of no shape": (OF_ONE, manifest(files=[[CELL]])),
    "no file": (OF_ONE, manifest(files=[])),
    "no time": (OF_ONE, manifest(written=None)),
    "a time of no run": (OF_ONE, manifest(written={"0" * 12: 0})),
    "a run elsewhere": (OF_ONE, manifest(written={"../x": 0})),
    "another size": (OF_ONE, manifest(files=[{"path": CELL, "bytes": 2, "sha256": "0" * 64}])),
    "another sum": (OF_ONE, manifest()),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", HOSTILE)
def test_names_files_and_manifests_that_are_none_of_a_pack_are_refused(name, tmp_path, refused):
    entries, *rest = HOSTILE[name]
    expected = rest[1] if rest[1:] else "is no whole pack"
    file = tmp_path / "theirs.zip"
    file.write_bytes(pack_of(entries, *rest[:1]))
    said = refused("store", "unpack", file, f"out={tmp_path / 'out'}")
    assert expected in said and "\x1b" not in said
    assert not {path.suffix for path in tmp_path.rglob("*")} - {".zip", ""}
    assert {path.name for path in tmp_path.glob("out/*")} <= {"locks", "cells"}


def test_a_run_is_the_one_that_its_record_says(packed, tmp_path):
    with zipfile.ZipFile(packed) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name != MANIFEST}
    record = f"runs/{RUNS[0]}/{LAST}"
    known = unsealed_json(files[record])
    other = sealed_json({**known, "files": {**known["files"], "cells.txt": "0" * 64}}).encode()
    for changed in (
        {f"runs/{RUNS[0]}/metrics.parquet": files[f"runs/{RUNS[1]}/metrics.parquet"]},
        {record: files[f"runs/{RUNS[1]}/{LAST}"]},
        {record: other},
        {record: sealed_json({**known, "seed": 99}).encode()},
    ):
        packed.write_bytes(pack_of({**files, **changed}))
        with pytest.raises(UserError, match="is no whole pack"):
            unpack(packed, tmp_path / "out")
    del files[f"runs/{RUNS[0]}/summary.csv"]
    packed.write_bytes(pack_of(files))
    with pytest.raises(UserError, match="its runs have other files than their records list"):
        unpack(packed, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_unfolds_to_too_much_is_refused_before_it_does(tmp_path, monkeypatch):
    file, out = tmp_path / "bomb.zip", tmp_path / "out"
    file.write_bytes(pack_of({"cells/ab/ab.parquet": bytes(80 << 20)}))
    with pytest.raises(UserError, match="it unfolds to over 100 times its size"):
        unpack(file, out)
    monkeypatch.setenv("FAIRBENCH_MAX_MEMORY", "0.01")
    file.write_bytes(pack_of({"cells/ab/ab.parquet": bytes(20 << 20)}))
    with pytest.raises(UserError, match="FAIRBENCH_MAX_MEMORY"):
        unpack(file, out)
    told = bytearray(pack_of({"cells/ab/ab.parquet": bytes(8 << 20)}))
    at = told.index(b"PK\x01\x02")  # of the directory, which says that it is of one byte
    told[at + 24 : at + 28] = (1).to_bytes(4, "little")
    file.write_bytes(sealed(bytes(told[:-64]) + b"0" * 64))
    with pytest.raises(UserError, match="its manifest has other files, or other sizes"):
        unpack(file, out)
    assert not out.exists()


def test_another_run_of_the_same_id_is_refused_and_nothing_is_written(
    packed, tmp_path, make_dataset, refused
):
    out = tmp_path / "out"
    write(out, 1, make_dataset(), seed=9)
    before = contents(out)
    said = refused("store", "unpack", packed, f"out={out}")
    assert f"run {RUNS[1]} is in {out} already, and is not the same as in {packed}" in said
    assert contents(out) == before


def test_a_damaged_file_of_an_unpacked_folder_is_made_whole_by_unpacking_again(packed, tmp_path):
    out = tmp_path / "out"
    unpack(packed, out)
    whole = contents(out)
    (run, cell) = (out / "runs" / RUNS[0], Store(out).cell_path("a0"))
    (run / TABLES).write_bytes(b"x")
    (out / "runs" / RUNS[2] / TABLES).unlink()
    cell.write_bytes(cell.read_bytes()[:-1])
    (out / "runs" / RUNS[1] / LAST).write_bytes(b"x")
    for path in (out / "splits").iterdir():
        path.unlink()
    assert Catalogue(out).one(RUNS[0]).damaged_files()
    assert unpack(packed, out) == (1, 1)
    after = contents(out)
    assert {name: after[name] for name in whole} == whole
    assert set(after) - set(whole) == {name for name in after if ".damaged-" in name}


@pytest.mark.thorough
def test_a_kill_leaves_no_run_that_is_not_whole(folder, packed, tmp_path):
    words = [sys.executable, "-m", "fairbench", "store", "unpack", str(packed)]
    whole, partly = contents(folder), 0
    for attempt in range(40):
        out = tmp_path / f"out{attempt}"
        process = subprocess.Popen([*words, f"out={out}"], stderr=subprocess.DEVNULL)
        wanted = attempt % 20
        while process.poll() is None and len(list(out.rglob("*.*"))) <= wanted:
            time.sleep(0.0005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        partly += bool(out.is_dir() and not set(whole) <= set(contents(out)))
        for run in Catalogue(out):
            assert not run.damaged_files()
            assert Store(out).has(run.cells()[0])
        unpack(packed, out)
        after = contents(out)
        assert {name: after[name] for name in whole} == whole
        shutil.rmtree(out)
        if partly >= 3 and attempt >= 5:
            break
    assert partly


REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "said"), REFUSED.items())
def test_bad_input_is_refused_in_one_line(folder, packed, words, said, monkeypatch, refused):
    monkeypatch.chdir(folder.parent)
    (folder.parent / "README").write_text("mine")
    refused(*words.split(), message=said)
    assert not (folder.parent / "new").exists()


@pytest.mark.parametrize("kind", ["runs/*/tables.zip", "cells/*/*", "splits/*", "data/*"])
def test_what_is_damaged_is_not_packed_and_leaves_no_pack(folder, kind, refused):
    path = min(folder.glob(kind))
    content = path.read_bytes()
    path.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    said = refused("store", "pack", folder, "people=true")
    assert path.name in said and "damaged" in said
    assert [path.name for path in folder.parent.glob("*")] == ["mine"]
