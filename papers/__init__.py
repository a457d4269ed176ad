"""One folder a paper: its published numbers, how they map to our runs, and what else it computed.

A folder holds ``published.csv``, ``mapping.yaml``, ``findings.md`` and modules that run as
``python -m papers.PAPER.MODULE``. docs and ``papers/README.md`` describe the files.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"
PAPERS = ROOT / "papers"
