"""Released files of scores: both kinds are read as described, and faults in them are named."""

import hashlib

import numpy as np
import pytest
import yaml

from fairbench.components.papers.released_scores import MulticlassFile, ScoreFile
from fairbench.core.errors import UserError
from fairbench.data.download import Archive
from fairbench.experiments.build import constructor
from tests.harness import CONF, archive_with, options

TEXT = "id,sex,y,m\n1,f,1,0.9\n2,m,0,0.2\n3,x,0,0.4\n"


def written(kind, folder, text, **parts):
    """Return the released file of a text, and the archive that has it."""
    (folder / "scores.csv").write_text(text)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return kind("scores.csv", sha256=checksum, **parts), Archive(str(folder), download=False)


def test_columns_become_a_labelled_table(tmp_path):
    columns = {"target": "y", "groups": {"sex": "m"}, "scores": {"model": "m"}}
    for inverted, as_released, scores in (
        (False, False, [0.9, 0.2, 0.4]),
        # Inverted scores are turned round unless they are wanted as released.
        (True, False, [0.1, 0.8, 0.6]),
        (True, True, [0.9, 0.2, 0.4]),
    ):
        file, archive = written(ScoreFile, tmp_path, TEXT, **columns, inverted=inverted)
        table = file.table(archive, "model", "sex", as_released=as_released)
        assert table.groups == ("m", "f", "x")
        np.testing.assert_allclose([table.label, table.score], [[1, 0, 0], scores])


BINARY = [
    name
    for name in options("scores")
    if "ScoreFile" in (CONF / "scores" / f"{name}.yaml").read_text()
]


def described(name):
    """Return a released file as conf/scores describes it, and the archive that has it."""
    text = (CONF / "scores" / f"{name}.yaml").read_text(encoding="utf-8")
    file = constructor("scores", yaml.safe_load(text))()
    return file, archive_with(file)


@pytest.mark.data
@pytest.mark.parametrize("name", BINARY)
def test_released_files_are_what_they_are_said_to_be(name):
    file, archive = described(name)
    for column in file.groups:
        table = file.table(archive, "logistic_regression", column)
        assert (table.prediction == table.label).mean() > 0.6


TOP = "Index Correct Predicted Confidence\n0 cat cat 0.9\n1 dog cat 0.6\n2 emu dog 0.5\n"
ALL = "1 0.2 0.7 0.1\n0.0 0.5 0.2 0.3\n2 0.30 0.36 0.34\n"
NAMES = {"target": "Correct", "prediction": "Predicted", "confidence": "Confidence"}


def scores(folder, text, **parts):
    file, archive = written(MulticlassFile, folder, text, **parts)
    return file.scores(archive)


def test_predicted_class_and_confidence(tmp_path):
    pool = scores(tmp_path, TOP, **NAMES)
    assert pool.classes == ("cat", "dog", "emu")
    found = pool.target, pool.prediction, pool.correct
    np.testing.assert_array_equal(found, [[0, 1, 2], [0, 0, 1], [1, 0, 0]])
    shares = [[0.9, 0.05, 0.05], [0.6, 0.2, 0.2], [0.25, 0.5, 0.25]]
    np.testing.assert_allclose(pool.distribution(), shares)


def test_probabilities_of_all_classes(tmp_path):
    pool = scores(tmp_path, ALL)
    assert pool.classes == ("0", "1", "2")
    np.testing.assert_array_equal(pool.target, [1, 0, 2])
    np.testing.assert_array_equal(pool.prediction, [1, 0, 1])
    np.testing.assert_allclose(pool.confidence, [0.7, 0.5, 0.36])
    assert pool.distribution() is pool.probabilities


def test_unlabelled_rows_and_hidden_labels(tmp_path):
    pool = scores(tmp_path, TOP.replace("dog cat", " cat"), **NAMES)
    np.testing.assert_array_equal(pool.labelled, [0, 2])
    assert np.isnan(pool.correct[1])
    np.testing.assert_array_equal(pool.showing(np.array([2])).labelled, [2])


FAULTS = {
    "no prediction": (TOP.replace("cat 0.6", " 0.6"), NAMES, "'Predicted', row 2: '' is not one"),
    "confidence": (TOP.replace("0.6", "1.6"), NAMES, "'Confidence', row 2: '1.6' is not a prob"),
    "no number": (TOP.replace("0.6", "high"), NAMES, "'Confidence', row 2: 'high' is no number"),
    "column": (TOP, {**NAMES, "target": "True"}, "no column 'True'"),
    "sum": (ALL.replace("0.34", "0.64"), {}, "row 3: the probabilities of the 3 classes sum to"),
    "negative": (ALL.replace("0.36", "-0.36"), {}, "'probability of 1', row 3: '-0.36' is not a"),
    "label": (ALL.replace("\n2 0.3", "\n7 0.3"), {}, "'true class', row 3: '7' is not one of"),
    "width": (ALL.replace(" 0.34", ""), {}, "row 3 has 3 fields"),
    "empty": ("", {}, "no header line: is the file empty"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_with_their_place(fault, tmp_path):
    text, parts, message = FAULTS[fault]
    with pytest.raises(UserError, match=message):
        scores(tmp_path, text, **parts)


@pytest.mark.data
@pytest.mark.parametrize(("name", "rows", "right"), [("cifar100", 10000, 7414),
                                                     ("svhn", 26032, 25187)])  # fmt: skip
def test_released_files_have_their_published_accuracy(name, rows, right):
    file, archive = described(name)
    pool = file.scores(archive)
    assert (len(pool), pool.correct.sum()) == (rows, right)
