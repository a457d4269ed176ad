"""An archive of generated raw files: nothing is verified, nothing is downloaded."""

import pytest

from fairbench.components import imported
from fairbench.data.download import Archive
from tests.datasets.raw_desk import PARQUET
from tests.datasets.raw_files import RAW


@pytest.fixture
def archive(tmp_path):
    """Return an archive that knows the temporary folder alone."""
    return Archive(search_path=(tmp_path,), store=tmp_path / "store", verify=False, download=False)


@pytest.fixture
def save(tmp_path):
    """Return a function that writes generated files, path -> bytes, into that folder."""

    def write(files):
        for path, content in files.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    return write


@pytest.fixture
def load(archive, save):
    """Return a function that loads a task from its generated files, or from those it is given."""

    def loaded(task, files=None, **options):
        if task in PARQUET:
            save(dict([PARQUET[task]()]) if files is None else files)
            return imported(f"datasets.{task}").load(archive, **options)
        raw = RAW[task]()
        save(raw.files if files is None else files)
        return raw.load(archive, **options)

    return loaded
