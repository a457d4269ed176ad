"""Run one configuration, or with -m a sweep of them: ``python run.py --help``."""

import gc
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
# Set before numpy is imported, and inherited by every worker: one thread each, the checkout first
# on the path (before the folder it is started in), errors as exceptions rather than as Hydra's
# traceback.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
os.environ["PYTHONSAFEPATH"] = "1"
os.environ["HYDRA_FULL_ERROR"] = "1"
# Importing allocates much and frees nothing: a tenth of the start is the collector looking.
gc.set_threshold(1_000_000, 20, 100)

import hydra  # noqa: E402
from omegaconf import DictConfig  # noqa: E402

import datasets  # noqa: E402
from fairbench.cli.entry import main  # noqa: E402
from fairbench.cli.job import job as run_job  # noqa: E402


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def job(cfg: DictConfig) -> None:
    """Run one composed configuration."""
    run_job(cfg)


if __name__ == "__main__":
    if Path(str(datasets.__file__)).resolve().parent != ROOT / "datasets":
        sys.exit(f"error: another package named 'datasets' was imported, from {datasets.__file__}")
    sys.exit(main(job, ROOT / "conf"))
