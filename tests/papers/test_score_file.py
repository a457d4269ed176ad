"""Score files: what conf/scores describes is read, and faults are named."""

import hashlib

import numpy as np
import pytest
import yaml

from fairbench.components import made
from fairbench.components.papers.released_scores import ScoreFile
from fairbench.core.errors import DataError, UserError
from fairbench.data.download import Archive
from tests.harness import CONF, options

TEXT = "id,sex,y,m\n1,f,1,0.9\n2,m,0,0.2\n3,x,0,0.4\n"


def written(folder, text=TEXT, **parts):
    (folder / "scores.csv").write_text(text)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    defaults = {"target": "y", "groups": {"sex": "m"}, "scores": {"model": "m"}}
    file = ScoreFile("scores.csv", checksum, **{**defaults, **parts})
    return file, Archive.of(str(folder), download=False)


def test_columns_become_a_labelled_table(tmp_path):
    file, archive = written(tmp_path)
    table = file.table(archive, "model", "sex")
    assert table.groups == ("m", "f", "x")
    np.testing.assert_array_equal(table.label, [1, 0, 0])
    np.testing.assert_array_equal(table.score, [0.9, 0.2, 0.4])


def test_inverted_scores_are_turned_round_unless_wanted_as_released(tmp_path):
    file, archive = written(tmp_path, inverted=True)
    np.testing.assert_allclose(file.table(archive, "model", "sex").score, [0.1, 0.8, 0.6])
    released = file.table(archive, "model", "sex", as_released=True)
    np.testing.assert_allclose(released.score, [0.9, 0.2, 0.4])


def test_faults_are_named(tmp_path):
    file, archive = written(tmp_path)
    with pytest.raises(UserError, match="unknown classifier of scores.csv 'forest'"):
        file.table(archive, "forest", "sex")
    with pytest.raises(UserError, match="unknown group column of scores.csv 'race'"):
        file.table(archive, "model", "race")
    file, archive = written(tmp_path, TEXT.replace("0.4", "1.4"))
    with pytest.raises(UserError, match="'score' is 1.4 in row 3"):
        file.table(archive, "model", "sex")
    (tmp_path / "scores.csv").write_text(TEXT + "4,f,1,0.3\n")
    with pytest.raises(DataError, match="sha256"):
        file.table(archive, "model", "sex")


BINARY = [
    name
    for name in options("scores")
    if "ScoreFile" in (CONF / "scores" / f"{name}.yaml").read_text()
]


@pytest.mark.parametrize("name", BINARY)
def test_every_description_is_a_score_file(name):
    file = made(yaml.safe_load((CONF / "scores" / f"{name}.yaml").read_text()))
    assert isinstance(file, ScoreFile)
    assert len(file.sha256) == 64


@pytest.mark.data
@pytest.mark.parametrize("name", BINARY)
def test_released_files_are_what_they_are_said_to_be(name):
    file = made(yaml.safe_load((CONF / "scores" / f"{name}.yaml").read_text()))
    archive = Archive.of(download=False)
    if archive.locate(file) is None:
        pytest.skip("not found")
    for column in file.groups:
        table = file.table(archive, "logistic_regression", column)
        right = (table.prediction == table.label).mean()
        assert right > 0.6
