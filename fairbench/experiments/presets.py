"""Reads choices and experiments from ``conf``, and writes the commands that make runs again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir

from fairbench.core.errors import unknown_name
from fairbench.experiments.configuration import IDENTITY, Identity
from fairbench.results.catalogue import flat
from fairbench.results.runs import UNVERIFIED, Run

REPEATS = "split.repeats"
_MERGED = ("method", "intervention", "learner")
_NAMED = ("dataset", "method")  # commands name these even if they are the defaults


@dataclass(frozen=True)
class Experiment:
    """A sweep: the options that it fixes, and the values of those that it varies.

    Attributes
    ----------
    fixed : option -> value, such as ``split.train``.
    varied : group or option -> values as written, such as ``dataset``.
    changed : option of a group that varies -> the value that it has in every choice.
    """

    name: str
    fixed: Mapping[str, Any]
    varied: Mapping[str, Sequence[str]]
    changed: Mapping[str, Any]


@dataclass(frozen=True)
class Presets:
    """A folder of configurations, each composed once."""

    conf: Path
    _choices: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    _experiments: dict[str, Experiment] = field(default_factory=dict)

    def choice(self, group: str, option: str) -> dict[str, Any]:
        """Return the options of a group's choice; empty if there is no such choice."""
        key = group, option
        if key not in self._choices:
            self._choices[key] = options_of({group: self._read(group, option)}, [group])
        return self._choices[key]

    def _read(self, group: str, option: str) -> dict[str, Any]:
        """Read a choice and the choices that it builds on, which is far faster than composing."""
        path = self.conf / group / f"{option}.yaml"
        config = dict(yaml.safe_load(path.read_text(encoding="utf-8"))) if path.exists() else {}
        options: dict[str, Any] = {}
        for base in config.pop("defaults", []):
            options |= self._read(group, base) if base != "_self_" else {}
        if path.exists():
            config.pop("_target_", None)
            config["name"] = option
        return options | config

    def experiment(self, name: str) -> Experiment:
        """Return an experiment's sweep."""
        if name not in self._experiments:
            composed = self._compose(f"experiment={name}")
            varied = {
                str(key): [text.strip() for text in str(value).split(",")]
                for key, value in composed["sweep"].items()
            }
            options = options_of(composed, IDENTITY)
            fixed = {key: options[key] for key in options if not key.startswith(tuple(varied))}
            changed = {
                key: options[key]
                for group in varied
                for key, value in self.choice(group, str(options.get(f"{group}.name"))).items()
                if options.get(key, value) != value and key not in varied
            }
            self._experiments[name] = Experiment(name, fixed, varied, changed)
        return self._experiments[name]

    def experiments(self) -> list[str]:
        """Return the names of all experiments."""
        return experiments_in(self.conf)

    def runs_of_all(self, name: str, runs: Mapping[str, Run]) -> set[str]:
        """Return the ids of the runs that answer an experiment, or one of a folder of them.

        Raises
        ------
        UserError : neither an experiment nor a folder.
        """
        names = self.experiments()
        members = [name] if name in names else experiments_in(self.conf, name)
        if not members:
            raise unknown_name("experiment", name, names)
        return {run for member in members for run in self.runs_of(member, runs)}

    def runs_of(self, name: str, runs: Mapping[str, Run]) -> dict[str, tuple[dict[str, str], Run]]:
        """Return the runs that answer an experiment, with what they chose, by run id.

        A run may have drawn fewer splits than the experiment asks for; of those that differ in
        this alone, the one of most splits answers.
        """
        run_of_choices: dict[tuple[str, ...], tuple[dict[str, str], Run]] = {}
        for run in self._eligible(name, runs.values()):
            chosen = self._choices_of(self.experiment(name), run)
            if chosen is not None:
                key = tuple(chosen.values())
                if key not in run_of_choices or _repeats(run) > _repeats(run_of_choices[key][1]):
                    run_of_choices[key] = chosen, run
        return {run.id: (chosen, run) for chosen, run in run_of_choices.values()}

    def _eligible(self, name: str, runs: Iterable[Run]) -> list[Run]:
        """Return the runs whose choices an experiment's files sweep over, whatever their options.

        Composing takes a tenth of a second, so an experiment without any such run is not composed.
        """
        swept = {
            group: {text.strip() for text in str(values).split(",")}
            for group, values in self._params(name).items()
            if "." not in group
        }
        return [
            run
            for run in runs
            if all(run.choices[name] in swept[name] for name in swept if name in run.choices)
        ]

    def _params(self, name: str) -> dict[str, Any]:
        """Return the words that an experiment's file, and those it builds on, sweep over."""
        params: dict[str, Any] = {}
        for file in experiment_files(self.conf, name):
            params |= file.get("hydra", {}).get("sweeper", {}).get("params", {})
        return params

    def _choices_of(self, experiment: Experiment, run: Run) -> dict[str, str] | None:
        """Return the choices of a run in the sweep, or None if it is none of its jobs."""
        # An option that has come since is not in a run's configuration: it had its default.
        options = options_of(run.config, IDENTITY)
        if any(
            options.get(key, value) != value
            for key, value in experiment.fixed.items()
            if key != REPEATS
        ):
            return None
        chosen = {}
        for name, values in experiment.varied.items():
            if "." in name or name in options:
                text = next(
                    (text for text in values if yaml.safe_load(text) == options.get(name)), ""
                )
            else:
                text = self._matching_choice(name, run, options, experiment)
            if text not in values:
                return None
            chosen[name] = text
        return chosen

    def _matching_choice(
        self, group: str, run: Run, run_options: Mapping[str, Any], experiment: Experiment
    ) -> str:
        """Return a run's choice for a group; empty if the run has other options than that."""
        option = str(run.choices.get(group, ""))
        preset = self.choice(group, option)
        expected = {key: value for key, value in preset.items() if key not in experiment.varied}
        expected |= {key: experiment.changed[key] for key in expected if key in experiment.changed}
        agrees = all(run_options.get(key, value) == value for key, value in expected.items())
        return option if preset and agrees else ""

    def _compose(self, override: str) -> dict[str, Any]:
        with initialize_config_dir(str(self.conf.resolve()), version_base="1.3"):
            composed = compose("config", [override], return_hydra_config=True)
        sweep = dict(composed.hydra.sweeper.get("params") or {})
        return {**Identity.of(composed).config, "sweep": sweep}

    @cached_property
    def default_choices(self) -> dict[str, str]:
        """The choice that each group has if a command names none."""
        main = yaml.safe_load((self.conf / "config.yaml").read_text(encoding="utf-8"))
        choices = {
            name: str(v)
            for default in main["defaults"]
            if default != "_self_"
            for name, v in default.items()
        }
        return {name: v for name, v in choices.items() if name in IDENTITY and name not in _NAMED}

    def overrides(self, run: Run) -> dict[str, str]:
        """Return the words of a run's command: its choices, and options other than defaults."""
        options = options_of(run.config, IDENTITY)
        chosen = run.choices
        chosen["dataset"] = chosen["dataset"].removesuffix("" if run.verified else UNVERIFIED)
        words = dict(chosen)
        preset: dict[str, Any] = {"seed": 0, "protect": None}
        consistency = "consistency", self.default_choices["consistency"]
        for group, option in [*chosen.items(), consistency]:
            preset |= self.choice(group, option)
        for key, value in options.items():
            if key in preset and preset[key] != value:
                words[key] = _as_written(value)
        if not run.verified:
            words["data.verify"] = "false"
        return {
            name: text for name, text in words.items() if self.default_choices.get(name) != text
        }

    def commands(self, jobs: Sequence[Mapping[str, str]]) -> list[str]:
        """Return command lines for jobs; those that differ in one group are merged to a sweep."""
        merged = [dict(job) for job in jobs]
        for group in _MERGED:
            sweeps: dict[tuple[tuple[str, str], ...], dict[str, None]] = {}
            for job in merged:
                value = job.pop(group, self.default_choices.get(group, ""))
                sweeps.setdefault(tuple(job.items()), {})[value] = None
            merged = [
                {**dict(other_options), group: ",".join(values)}
                for other_options, values in sweeps.items()
            ]
        return [self._command(job) for job in merged]

    def _command(self, job: Mapping[str, str]) -> str:
        """Return the command line of a job, without what is the default."""
        leading = {name: job[name] for name in ("dataset", *_MERGED) if name in job}
        options = {
            name: text
            for name, text in {**leading, **job}.items()
            if self.default_choices.get(name) != text
        }
        sweep = ["-m"] if any("," in options.get(group, "") for group in _MERGED) else []
        words = [f"{name}={text}" for name, text in options.items()]
        return shlex.join(["fairbench", "run", *sweep, *words])


def experiments_in(conf: Path, folder: str = "") -> list[str]:
    """Return the names of the experiments of a folder of ``conf/experiment``, by default of all."""
    root = conf / "experiment"
    paths = (root / folder).rglob("*.yaml")
    return sorted(str(path.relative_to(root).with_suffix("")) for path in paths)


def experiment_files(conf: Path, name: str) -> list[dict[str, Any]]:
    """Return the contents of the files that an experiment builds on, and last of its own."""
    config = yaml.safe_load((conf / "experiment" / f"{name}.yaml").read_text("utf-8"))
    bases = [
        base for base in config.get("defaults", ()) if isinstance(base, str) and base != "_self_"
    ]
    return [*(file for base in bases for file in experiment_files(conf, base)), config]


def options_of(config: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any]:
    """Return some groups of a configuration option by option: ``{"split.repeats": 3, ...}``."""
    return flat({name: config[name] for name in groups if name in config})


def _repeats(run: Run) -> int:
    return int(run.config["split"].get("repeats", 1))


@dataclass(frozen=True)
class Provenance:
    """The origin of a table: runs, data, versions and commands.

    Attributes
    ----------
    runs : ids of the runs, which are hashes of their resolved configurations.
    data : file -> sha256; empty for simulated data.
    versions : package -> version, several where runs differ.
    commits : the commits of this project, with ``+`` if files were changed since.
    commands : the commands that compute the runs again.
    """

    runs: tuple[str, ...]
    data: Mapping[str, str]
    versions: Mapping[str, str]
    commits: tuple[str, ...]
    commands: tuple[str, ...]


def provenance(runs: Sequence[Run], presets: Presets) -> Provenance:
    """Return the origin of some runs: data, versions and commands."""
    environments = [run.environment for run in runs]
    commits = {
        str(environment.get("git_commit", "unknown"))[:12]
        + ("+" if environment.get("git_dirty") else "")
        for environment in environments
    }
    return Provenance(
        tuple(run.id for run in runs),
        _merge(environment["data_sha256"] for environment in environments),
        _merge(environment["versions"] for environment in environments),
        tuple(sorted(commits)),
        tuple(presets.commands([presets.overrides(run) for run in runs])),
    )


def _merge(tables: Iterator[Mapping[str, str]]) -> dict[str, str]:
    values: dict[str, dict[str, None]] = {}
    for table in tables:
        for name, value in table.items():
            values.setdefault(name, {})[str(value)] = None
    return {name: ", ".join(different) for name, different in values.items()}


def _as_written(value: object) -> str:
    """Return a value in Hydra's grammar of overrides, where JSON's nearly is one."""
    if isinstance(value, str):
        plain = value.replace("_", "").replace("-", "").replace(".", "").isalnum()
        return value if plain else "'" + value.replace("'", "\\'") + "'"
    return json.dumps(value).replace(" ", "").replace('"', "'")
