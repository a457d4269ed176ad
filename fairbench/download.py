"""Finding, verifying and, if need be, downloading the raw files of data sets."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairbench.data import Source
from fairbench.errors import DataError

CHECKOUT = Path(__file__).resolve().parents[1]


def default_search_path() -> tuple[Path, ...]:
    """Return the folders looked in when the configuration names none."""
    environment = os.environ.get("FAIRBENCH_DATA")
    first = (Path(environment),) if environment else ()
    return (*first, Path("data"), CHECKOUT / "data", CHECKOUT.parent / "shared" / "data")


@dataclass(frozen=True)
class Archive:
    """Where raw files are looked for, and what may be done when they are not there.

    Attributes
    ----------
    search_path : folders, first match wins; files may be plain or gzip-compressed.
    verify : refuse a file whose sha256 is not the recorded one.
    download : fetch a missing file from its mirrors into `store`.
    """

    search_path: tuple[Path, ...]
    store: Path = Path("data")
    verify: bool = True
    download: bool = True

    @classmethod
    def of(
        cls,
        search_path: Sequence[str] | None = None,
        store: str = "data",
        verify: bool = True,
        download: bool = True,
    ) -> Archive:
        """Build an archive from configuration values; ``None`` searches the default folders."""
        folders = tuple(map(Path, search_path)) if search_path else default_search_path()
        return cls(folders, Path(store), verify, download)

    def read(self, source: Source) -> bytes:
        """Return the verified, uncompressed content of `source`.

        Raises
        ------
        DataError : the file is nowhere to be had, or its checksum is wrong.
        """
        path = self.locate(source)
        if path is None:
            path = self._download(source)
        content = _content(path)
        if self.verify and (found := hashlib.sha256(content).hexdigest()) != source.sha256:
            raise DataError(
                f"{path} has sha256 {found}, expected {source.sha256}: the file was left in place "
                "and not used; replace it, or set data.verify=false to use it as it is"
            )
        return content

    def locate(self, source: Source) -> Path | None:
        """Return the first existing file for `source`, plain or with ``.gz``, or None."""
        for folder in self.search_path:
            for path in (folder / source.path, folder / f"{source.path}.gz"):
                if path.is_file():
                    return path
        return None

    def _download(self, source: Source) -> Path:
        if not (self.download and source.urls):
            raise DataError(self._missing(source, "downloading is off (data.download=false)"))
        import pooch

        target = self.store / source.path
        reasons = []
        for url in source.urls:
            try:
                pooch.retrieve(
                    url,
                    known_hash=f"sha256:{source.sha256}" if self.verify else None,
                    fname=target.name,
                    path=target.parent,
                    progressbar=False,
                    downloader=pooch.HTTPDownloader(timeout=30),
                )
            except (OSError, ValueError) as error:
                reasons.append(f"{url}: {_reason(error)}")
            else:
                return target
        raise DataError(self._missing(source, "; ".join(reasons)))

    def _missing(self, source: Source, why: str) -> str:
        folders = ", ".join(dict.fromkeys(str(folder) for folder in self.search_path))
        return (
            f"file {source.path} not found in {folders}, nor downloaded ({why}). Get it from "
            f"{source.page}, and set data.search_path=[FOLDER] or FAIRBENCH_DATA=FOLDER so that "
            f"FOLDER/{source.path} is it"
        )


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _reason(error: Exception) -> str:
    """Return the first line of an error, without the object addresses that libraries print."""
    cause = getattr(error, "args", [error])
    text = str(cause[0] if cause else error).splitlines()[0]
    if "Failed to resolve" in text or "Max retries" in text or "NameResolution" in text:
        return "no network"
    return text[:160]
