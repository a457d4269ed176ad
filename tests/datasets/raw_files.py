"""Every task's generated raw files, by the task's name."""

import io

import numpy as np

from fairbench.components.datasets import dvlog
from tests.datasets import raw_desk, raw_large, raw_papers, raw_schools
from tests.datasets.raw_papers import SECRETS

__all__ = ["RAW", "SECRETS"]

# The functions of each module that make a task; two more kinds are private, or of one file alone.
RAW = {
    name: make
    for module in (raw_papers, raw_schools, raw_large, raw_desk)
    for name, make in vars(module).items()
    if getattr(make, "__module__", "") == module.__name__
    and not name.startswith("_")
    and name not in raw_desk.PARQUET
}


# Generated files of D-Vlog in its authors' layout: a folder of two arrays a video, and labels.

HEAD = "index,label,duration,gender,fold"


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def files(videos=10):
    """Return labels and arrays; one video's modalities differ by a frame, as some of theirs do."""
    draw, lines, made = np.random.default_rng(0), [HEAD], {}
    for video in range(videos):
        label, fold = ("depression", "normal")[video % 2], ("train", "train", "valid", "test")
        gender, seconds = "fm"[video % 3 == 0], 20 + 5 * video
        lines.append(f"{video},{label},{seconds}.31,{gender},{fold[video % 4]}")
        for name, width in dvlog.CHANNELS.items():
            frames = draw.normal(size=(seconds - (video == 4 and name == "visual"), width))
            made[f"dvlog/{video}/{video}_{name}.npy"] = npy(frames)
    return {"dvlog/labels.csv": ("\n".join(lines) + "\n").encode(), **made}
