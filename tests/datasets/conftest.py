"""An archive of generated raw files: nothing is verified, nothing is downloaded."""

import pytest

from fairbench.data.download import Archive


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
