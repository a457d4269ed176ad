"""D-Vlog in its authors' layout, generated: a folder of two arrays for each video, and labels."""

import io

import numpy as np
import pytest

from fairbench.components.datasets import dvlog
from fairbench.core.errors import DataError
from fairbench.data.splits import Predefined
from tests.datasets.raw_files import HEAD, files, npy


def test_the_authors_files_are_read(archive, save):
    save(files())
    data = dvlog.load(archive)
    assert data.features.names == ("acoustic", "visual")
    assert [part.channels for part in data.features.parts] == [25, 136]
    assert data.features.lengths[:, 0].tolist() == list(range(20, 70, 5))
    assert data.features.lengths[4].tolist() == [40, 39]
    assert data.target.tolist() == [1, 0] * 5
    assert data.sensitive["sex"].tolist()[:4] == ["male", "female", "female", "male"]
    assert data.groups("sex").cat.categories[0] == "male"
    (fold,) = Predefined().folds(data, 0)
    assert fold.test.tolist() == [3, 7] and len(fold.train) == 8
    first = np.load(io.BytesIO(files()["dvlog/0/0_acoustic.npy"]))
    np.testing.assert_allclose(data.features.parts[0].joined()[:20], first, rtol=1e-6)
    assert not data.redistributable


def test_where_to_ask_is_said_when_there_are_no_files(archive):
    with pytest.raises(DataError) as refused:
        dvlog.load(archive)
    assert "the raw file dvlog/labels.csv is missing" in str(refused.value)
    assert "sites.google.com/view/jeewoo-yoon/dataset" in str(refused.value)


VIDEO, LABELS, NO_ARRAY = "dvlog/3/3_visual.npy", "dvlog/labels.csv", "is no array of numbers"


def labels(line, head=HEAD):
    return f"{head}\n{line}\n".encode()


@pytest.mark.parametrize(
    ("path", "content", "sentence"),
    [
        (
            VIDEO,
            None,
            "^file 3/3_visual.npy not found beside dvlog/labels.csv, which names it; ask",
        ),
        (VIDEO, npy(np.array([{"a": 1}]), allow_pickle=True), f"{NO_ARRAY}: Object arrays cannot"),
        (VIDEO, b"<html>", f"3_visual.npy {NO_ARRAY}: "),
        (VIDEO, b"", f"3_visual.npy {NO_ARRAY}: "),
        (VIDEO, npy(np.ones(136)), f"3_visual.npy {NO_ARRAY}, frames x 136$"),
        (VIDEO, npy(np.ones((9, 25))), "3_visual.npy has 25 channels; visual frames have 136$"),
        (VIDEO, npy(np.ones((0, 136))), "^dvlog: visual of video 3 has no frames; a row has at"),
        (VIDEO, npy(np.full((9, 136), np.nan)), "missing or infinite in frame 0 of video 3$"),
        (LABELS, labels("0,sad,1,f,train"), "row 1: 'sad' is not one of depression, normal$"),
        (LABELS, labels("0,normal,1,f,dev"), "'fold', row 1: 'dev' is not one of test, train, val"),
        (LABELS, labels("../0,normal,1,f,train"), "index '../0' is no name of a folder$"),
        (LABELS, labels("0,normal,f,train", "index,label,gender,fold"), "duration"),
    ],
)
def test_a_spoilt_file_is_refused_in_one_line(path, content, sentence, archive, save, tmp_path):
    save(files())
    (tmp_path / path).unlink()
    save({} if content is None else {path: content})
    with pytest.raises(DataError, match=sentence) as refused:
        dvlog.load(archive)
    assert "\n" not in str(refused.value)


def test_missing_values_become_0_where_that_is_asked_for(archive, save):
    save({**files(), "dvlog/3/3_visual.npy": npy(np.full((9, 136), np.nan))})
    data = dvlog.load(archive, missing="zero")
    assert not data.features.take(np.array([3])).parts[1].joined().any()
