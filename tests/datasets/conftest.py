"""An archive of made-up raw files: nothing is verified, nothing is downloaded."""

from dataclasses import replace
from functools import partial
from tempfile import mkdtemp

import pytest

from fairbench.data.download import Archive
from tests.datasets.raw_files import ENTRIES, FOLDER, PARQUET, parquet, write_files


@pytest.fixture
def archive(tmp_path):
    """Return an archive that knows the temporary folder, and then the made-up files."""
    places = (tmp_path, FOLDER)
    return Archive(search_path=places, store=tmp_path / "store", verify=False, download=False)


@pytest.fixture
def save(tmp_path):
    """Return a function that writes files, path -> bytes, into the temporary folder."""
    return partial(write_files, tmp_path)


@pytest.fixture
def load(archive, tmp_path):
    """Return a function that loads a task from its file, or from those that it is given."""

    def loaded(task, files=None, **options):
        if files is None:
            files = {PARQUET[task]: parquet(PARQUET[task])} if task in PARQUET else {}
        places = (write_files(mkdtemp(dir=tmp_path), files), FOLDER)
        entry = ENTRIES[task]
        return entry.function(replace(archive, search_path=places), **entry.options | options)

    return loaded
