"""D-Vlog (Yoon et al. 2022): whether the speaker of a video blog is depressed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.datasets.raw_files import raw_file
from fairbench.core.errors import DataError
from fairbench.data.columns import one_of
from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive
from fairbench.data.features import Sequences
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="D-Vlog (Yoon, Kang, Kim, Han 2022)",
    source="'D-Vlog: Multimodal Vlog Dataset for Depression Detection', AAAI 36, DOI "
    "10.1609/aaai.v36i11.21483: features of 961 video blogs from YouTube. The authors give them "
    "on request: fill in the form on their page",
    licence="For research, under the authors' agreement. The data must not be passed on",
    paper_differences="Every second of a video is one frame of 25 acoustic descriptors (eGeMAPS) "
    "and one of 136 visual ones: the positions of 68 points of a face, 0 where none was found. "
    "Yoon et al. read 596 frames of each modality and fill up shorter videos with zeros; here "
    "whole videos are read, and the learner cuts them (`learner.length=596` as they do). The "
    "authors' validation rows count as training rows in `partition`. The loader is tested only on "
    "generated files of the same layout.",
    criticism="A label is an annotator's judgement of a video that was found by words such as "
    "'depression vlog': what people say of themselves in public. In about a tenth of the videos "
    "no face was ever found.",
)
LABELS = raw_file("dvlog/labels.csv")
CHANNELS = {"acoustic": 25, "visual": 136}
_FOLDS = {"train": "train", "valid": "train", "test": "test"}
_GENDERS = {"m": "male", "f": "female"}


def load(archive: Archive, *, missing: str = "refuse") -> Dataset:
    """Read the labels, and the acoustic and visual frames of every video in them.

    The folder of ``labels.csv`` has a folder for each video, with files such as
    ``0/0_acoustic.npy``.

    Parameters
    ----------
    missing : what to do if a value of a frame is missing: ``refuse`` the file, or read ``zero``.

    Raises
    ------
    DataError : a file is missing, malformed, or has another number of channels.
    """
    one_of("missing", missing, ("refuse", "zero"))
    table = RawTable.read(archive, LABELS)
    place = archive.locate(LABELS)
    folder = Path() if place is None else place.parent
    videos = table.text("index").tolist()
    table.number("duration")
    folds = table.category("fold", allowed=_FOLDS)
    modalities = {
        name: [_frames(folder, video, name, missing) for video in videos] for name in CHANNELS
    }
    return Dataset(
        name="dvlog",
        task=Task.BINARY,
        features=Sequences.of("dvlog", modalities, [f"video {video}" for video in videos]),
        target=table.flag("label", "depression", "normal").astype(int).rename("depression"),
        sensitive=pd.DataFrame({"sex": table.labels("gender", _GENDERS)}),
        privileged={"sex": "male"},
        target_name="depression",
        positive_label="depressed",
        favourable=0,
        partition=pd.Series(folds.map(_FOLDS).astype(str), name="partition"),
        sources=(LABELS,),
    )


def _frames(folder: Path, video: str, modality: str, missing: str) -> NDArray[Any]:
    """Return the frames (seconds, channels) of a video."""
    name = f"{video}_{modality}.npy"
    path = folder / video / name
    if not (video and Path(video).name == video and video not in (".", "..")):
        raise DataError(f"{LABELS.path}: index '{video}' is no name of a folder")
    try:
        # No object is unpickled.
        frames = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(
            f"file {video}/{name} not found beside {LABELS.path}, which names it; ask {LABELS.page}"
        ) from None
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"{path} is no array of numbers: {str(error).splitlines()[0]}") from error
    width = CHANNELS[modality]
    if not (isinstance(frames, np.ndarray) and frames.dtype.kind in "fiu" and frames.ndim == 2):
        raise DataError(f"{path} is no array of numbers, frames x {width}")
    if frames.shape[1] != width:
        raise DataError(f"{path} has {frames.shape[1]} channels; {modality} frames have {width}")
    return np.nan_to_num(frames, nan=0.0) if missing == "zero" else frames
