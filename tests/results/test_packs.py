"""Packs answer as the folder does, are the same bits, and are never read silently wrong."""

import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.core.files import sealed_json, unsealed_json
from fairbench.results import pack_file, pack_tables, packing
from fairbench.results.catalogue import Catalogue
from fairbench.results.cells import Store
from fairbench.results.pack_tables import unpacked
from fairbench.results.packing import Contents, write_pack
from fairbench.results.packs import damages, open_pack
from fairbench.results.run_writer import RunWriter
from fairbench.results.unpacking import unpack
from tests.results.small_packs import ALL_RUNS, RUNS, contents, packed, refused, small_folder, write


@pytest.fixture
def folder(tmp_path, make_dataset):
    return small_folder(tmp_path / "mine", make_dataset())


def test_a_pack_answers_as_its_folder_does(folder):
    mine, pack = Catalogue(folder), Catalogue(packed(folder))
    assert list(pack.runs) == list(RUNS)
    for one, other in zip(mine, pack, strict=True):
        assert one.environment == other.environment
        assert (one.config, one.choices, one.cells()) == (other.config, other.choices, one.cells())
        assert one.finished == other.finished
        assert one.content("config.yaml") == other.content("config.yaml")
        pd.testing.assert_frame_equal(one.all_metrics(), other.all_metrics())
        pd.testing.assert_frame_equal(one.predictions(), other.predictions())
        pd.testing.assert_frame_equal(one.summary(), other.summary(), rtol=1e-15)
        pd.testing.assert_frame_equal(one.people().sensitive, other.people().sensitive)
    pd.testing.assert_frame_equal(mine.to_dataframe(), pack.to_dataframe())


def test_cells_come_back_bit_for_bit_with_their_notes(folder):
    mine, pack = Store(folder), Store(packed(folder))
    for cell in ("a0", "b2", "shared"):
        one, other = mine.read(cell), pack.read(cell)
        assert one.notes == other.notes
        assert {n: v.tobytes() for n, v in one.columns.items()} == {
            n: v.tobytes() for n, v in other.columns.items()
        }
    assert pack.has("a0")
    assert not pack.has("a7")


def test_the_same_results_make_the_same_bits(folder):
    first = contents(packed(folder))
    other = folder.with_name("other")
    shutil.copytree(folder, other)
    assert contents(packed(other, "again")) == first
    out = folder.with_name("of-a-pack")
    write_pack([list(Catalogue(folder.with_name("pack")))], out, Contents(people=True))
    assert contents(out) == first


def test_a_killed_pack_goes_on_with_the_files_that_are_whole(folder, monkeypatch):
    whole, written = contents(packed(folder)), packing._write_file
    made = []

    def killed(path, kind, tables):
        if kind == "cells":
            raise KeyboardInterrupt
        return written(path, kind, tables)

    monkeypatch.setattr(packing, "_write_file", killed)
    with pytest.raises(KeyboardInterrupt):
        packed(folder, "later")
    assert not folder.with_name("later").exists()
    half = folder.with_name(".later.half")
    (half / "metrics-1-001.parquet").write_bytes(b"cut off")
    (half / ".cells-1-001.parquet.host.1.0a1b2c3d.tmp").touch()  # of what was killed
    footer = bytearray((half / "runs-1-001.parquet").read_bytes())
    footer[footer.index(b'"ids"') + 1] ^= 1
    (half / "runs-1-001.parquet").write_bytes(footer)
    monkeypatch.setattr(
        packing, "_write_file", lambda path, *rest: made.append(path.name) or written(path, *rest)
    )
    assert contents(packed(folder, "later")) == whole
    assert made == [
        "runs-1-001.parquet",
        "metrics-1-001.parquet",
        "cells-1-001.parquet",
        "cells-2-001.parquet",
    ]
    assert not half.exists()


def test_large_packs_are_split(folder, monkeypatch):
    whole = packed(folder)
    monkeypatch.setattr(pack_file, "MOST_TABLES", 2)
    split = packed(folder, "split")
    assert {"metrics-1-001.parquet", "metrics-1-002.parquet"} <= {p.name for p in split.iterdir()}
    for one, other in zip(Catalogue(whole), Catalogue(split), strict=True):
        pd.testing.assert_frame_equal(one.all_metrics(), other.all_metrics())
        pd.testing.assert_frame_equal(one.predictions(), other.predictions())


def test_what_is_left_out_is_said_and_named_where_it_is_asked_for(folder, capsys):
    out = folder.with_name("small")
    run_command(["store", "pack", f"results={folder}", f"out={out}", "cells=false",
                 "predictions=false", "metrics=error_rate"])  # fmt: skip
    said = capsys.readouterr().out
    assert "3 runs and 0 cells" in said
    for part in ("the cells;", "the predictions;", "all metrics but error_rate"):
        assert f"left out: {part}" in said
    run = next(iter(Catalogue(out)))
    for table in (run.all_metrics(), run.summary()):
        assert set(table["metric"]) == {"error_rate", "abstention_error_rate"}
    with pytest.raises(UserError, match=f"has no predictions of {RUNS[0]}: they were left out"):
        run.predictions()
    assert "holds no cells" in refused("verify", RUNS[0][:4], f"results={out}")
    assert "some of the metrics" in refused("unpack", out, f"out={folder.with_name('x')}")


def test_people_who_may_not_be_given_away_are_left_out_and_named(folder, capsys):
    out = folder.with_name("public")
    run_command(["store", "pack", f"results={folder}", f"out={out}"])
    assert "left out, since they may not be given away: target and groups of" in (
        capsys.readouterr().out
    )
    assert not list(out.glob("data-*"))
    with pytest.raises(UserError, match="may not be given away; repeat the command"):
        next(iter(Catalogue(out))).people()
    (path,) = packed(folder).glob("data-*")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_pack_is_only_read(folder):
    pack = packed(folder)
    with pytest.raises(UserError, match="is a pack, which is only read: run with results=FOLDER"):
        Store(pack).write("c", {}, {})
    assert "collecting garbage needs a results folder" in refused("gc", f"results={pack}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pack", "results=nowhere", "out=p"], "nowhere has no finished run"),
        (["pack", "results={mine}", "out={mine}/p"], "lies inside"),
        (["pack", "results={mine}", "out={pack}"], "is there already"),
        (["pack", "results={mine}"], "name the pack, out=PACK"),
        (["pack", "results={mine}", "out=p", "metrics=err_rate"], "did you mean error_rate"),
        (["pack", "results={mine}", "out=p", "zz"], "unknown run"),
        (["pack", "results={mine}", "out=p", "datset=a"], "did you mean dataset"),
        (["pack", "results={mine}", "out={file}/p"], "README is a file; name another place"),
        (["pack", "results={mine}", "out={pack}/p"], "is a pack, which stays as it is"),
        (["merge", "{mine}", "out=p"], "merge joins two packs or folders or more, and 1 is named"),
        (["merge", "out=p"], "merge joins two packs or folders or more, and none is named"),
        (["merge", "{mine}", "nowhere", "out=p"], "nowhere has no finished run, and is no pack"),
        (["unpack", "{mine}", "out=p"], "is no pack"),
        (["unpack"], "no pack is named: fairbench store unpack PACK out=FOLDER"),
        (["unpack", "{pack}", "out={pack}"], "is a pack, which stays as it is"),
        (["unpack", "{pack}", "out={file}"], "README is a file; name another place"),
        (["verify"], "nothing is named: fairbench store verify RUN, or verify PACK"),
        (["verify", "{mine}"], "is no pack, and a run is named by its id"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_refused_in_one_line(folder, words, said):
    places = {"mine": folder, "pack": packed(folder), "file": folder.with_name("README")}
    places["file"].touch()
    assert said in refused(*(word.format(**places) for word in words))
    assert not list(places["pack"].glob("locks"))


def test_a_pack_of_a_later_format_is_refused(folder):
    pack = packed(folder)
    about = unsealed_json((pack / "pack.json").read_bytes())
    (pack / "pack.json").write_text(sealed_json({**about, "format": 2}))
    assert "a pack of format 2, and this version" in refused("ls", f"results={pack}")


def test_an_unpacked_folder_is_finished_and_packs_to_the_same_tables(folder):
    pack = packed(folder)
    out = folder.with_name("unpacked")
    assert unpack(open_pack(pack), out) == (3, 7, [])
    assert unpack(open_pack(pack), out) == (0, 0, [])
    assert RunWriter(out / "runs" / RUNS[0]).finished("x")
    again = contents(packed(out, "again"))
    for name, content in contents(pack).items():
        if not name.startswith(("runs", "pack")):  # which have the sums of files
            assert again[name] == content


def test_a_column_without_any_value_comes_back_as_it_was(folder, make_dataset):
    run = ALL_RUNS[4]
    write(folder, run, ["a1"], make_dataset(), 4, reason=None)
    mine = Catalogue(folder).one(run)
    assert str(mine.table("metrics").schema.field("reason").type) == "null"
    result, out = packed(folder), folder.with_name("unpacked")
    unpack(open_pack(result), out)
    for other in (Catalogue(result), Catalogue(out)):
        assert other.one(run).table("metrics").equals(mine.table("metrics"), check_metadata=True)
        pd.testing.assert_frame_equal(other.one(run).all_metrics(), mine.all_metrics())


def test_categories_without_any_value_come_back_as_they_were():
    nothing = pa.nulls(3, pa.dictionary(pa.int8(), pa.null()))
    table = pa.table({"kind": nothing, "n": [1, 2, 3]})
    assert unpacked(pack_tables.packed(table)).equals(table)


def test_merged_folders_have_what_each_has_once(folder, make_dataset, capsys):
    other = folder.with_name("yours")
    write(other, RUNS[1], ["a1", "b1", "shared"], make_dataset(), 1)
    write(other, ALL_RUNS[3], ["a3", "shared"], make_dataset(), 3)
    out = folder.with_name("ours")
    run_command(["store", "merge", str(packed(folder)), str(other), f"out={out}", "people=true"])
    assert list(Catalogue(out).runs) == ALL_RUNS[:4]
    said = capsys.readouterr().out
    assert "4 runs and 8 cells" in said
    assert "4 runs and cells were in several folders, and the same in all" in said
    assert not list(damages(open_pack(out)))


@pytest.mark.parametrize("what", ["cell", "metrics", "code"])
def test_what_differs_is_refused_by_name_or_the_first_is_kept(folder, make_dataset, what):
    other, data = folder.with_name("yours"), make_dataset()
    seed = 5 if what == "metrics" else 1
    known = {"fingerprint": "y"} if what == "code" else None
    write(other, RUNS[1], ["a1", "b1", "shared"], data, seed, known=known)
    if what == "cell":
        Store(other).write("a1", {"row": np.arange(5, dtype=np.int32), "score": np.zeros(5)}, {})
    out = folder.with_name("ours")
    said = refused("merge", folder, other, f"out={out}")
    expected = {"cell": "cell a1 (", "metrics": "its metrics: value", "code": "other code or"}
    assert expected[what] in said
    assert "differing=first" in said
    run_command(["store", "merge", str(folder), str(other), f"out={out}", "differing=first"])
    mine, kept = Catalogue(folder), Catalogue(out)
    pd.testing.assert_frame_equal(mine.one(RUNS[1]).all_metrics(), kept.one(RUNS[1]).all_metrics())
    assert Store(out).read("a1").columns["score"].dtype == np.float32


def test_a_run_that_misses_a_file_is_not_packed(folder):
    (folder / "runs" / RUNS[1] / "metrics.parquet").unlink()
    assert f"{RUNS[1]}/metrics.parquet is missing" in refused(
        "pack", f"results={folder}", f"out={folder.with_name('out')}"
    )


def test_damaged_rows_of_a_split_are_not_packed(folder):
    path = min((folder / "splits").iterdir())
    path.write_text("mine")
    with pytest.raises(UserError, match=f"{path.stem}.parquet is damaged"):
        packed(folder)


def test_what_is_no_half_pack_is_in_the_way_and_stays(folder):
    half = folder.with_name(".pack.half")
    half.mkdir()
    (half / "thesis.docx").write_text("somebody's own")
    with pytest.raises(UserError, match="is in the way, and is not half a pack"):
        packed(folder)
    assert (half / "thesis.docx").read_text() == "somebody's own"
