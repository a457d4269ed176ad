"""What pyproject.toml cannot say: where packages lie that have another place in the wheel.

Data sets, algorithms, papers and configurations lie at the root of the tree, and are
``fairbench.components`` in the wheel.
"""

from setuptools import find_packages, setup

KINDS = ("algorithms", "datasets", "papers")
COMPONENTS = "fairbench.components"

setup(
    packages=[
        *find_packages(include=["fairbench*"]),
        *(f"{COMPONENTS}.{name}" for name in find_packages(include=[f"{k}*" for k in KINDS])),
        f"{COMPONENTS}.conf",
    ],
    package_dir={f"{COMPONENTS}.{name}": name for name in (*KINDS, "conf")},
    package_data={
        f"{COMPONENTS}.conf": ["**/*.yaml"],
        f"{COMPONENTS}.papers": ["**/*.yaml", "**/*.csv", "**/*.npz", "**/*.md"],
        "fairbench.audits.dossiers": ["rules/*.toml"],
        "fairbench.reporting.document": ["templates/*"],
    },
)
