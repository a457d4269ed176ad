"""The identity of a run, and the configurations that one can name.

:func:`identity_of` is a configuration as plain values, from which a run has its id and name.
:class:`Presets` reads choices and experiments from ``conf``, and writes the commands that make runs
again.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from fairbench.components import CONF, files_of, folders, options_in, parts_of
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.options import hydra_word
from fairbench.core.text import said
from fairbench.results.catalogue import flat
from fairbench.results.record import GROUPS, UNVERIFIED, VERIFIED
from fairbench.results.runs import Run

if TYPE_CHECKING:
    from omegaconf import DictConfig

COMPONENTS = (*GROUPS, "consistency")
# What a run is, as against how and where it is computed.
IDENTITY = (*COMPONENTS, "seed", "protect", "headline")
# A composed configuration as plain values; of Hydra's own part it has the choices.
Config: TypeAlias = Mapping[str, Any]


def plain(cfg: DictConfig | Config) -> Config:
    """Return a configuration as plain, resolved values; of Hydra's own part, the choices alone."""
    from omegaconf import DictConfig, OmegaConf

    if not isinstance(cfg, DictConfig):
        return cfg
    chosen = OmegaConf.to_container(cfg.hydra.runtime.choices)
    settings = {
        str(name): OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
        for name, node in cfg.items()
        if name != "hydra"
    }
    return {**settings, "hydra": {"runtime": {"choices": chosen}}}


def identity_of(
    cfg: DictConfig | Config, *, verified: bool = True
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the identity of a run: the same command is the same run, wherever it is given.

    Parameters
    ----------
    verified : whether the raw files of its data set are those that are known. Of others, it is
        another run, and by another name wherever it is listed, compared or shown.

    Returns
    -------
    choices : the option chosen for every group of components, from which the run has its name.
    stored : the stored configuration, of which the run's id is a hash: every component by its name,
        not by the path of its code.
    """
    config = plain(cfg)
    # It has to be composed with ``return_hydra_config=True``.
    chosen = {name: str(option) for name, option in config["hydra"]["runtime"]["choices"].items()}
    stored: dict[str, Any] = {
        group: {"name": chosen[group], **config[group]} for group in COMPONENTS
    }
    for options in stored.values():
        del options["_target_"]
    choices = {group: chosen[group] for group in GROUPS}
    if not verified:
        stored["dataset"][VERIFIED] = False
        choices["dataset"] += UNVERIFIED
    # Most runs name none, and have the ids that they had before there was one.
    named = {"headline": gap} if (gap := config.get("headline")) is not None else {}
    stored |= {"seed": int(config["seed"]), "protect": config["protect"], **named}
    return choices, stored


@cache
def configurations(group: str) -> dict[str, dict[str, Any]]:
    """Return every choice of a group as its file has it, by name."""
    paths = sorted((CONF / group).glob("*.yaml"))
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths}


def full_name(name: str, stored: Mapping[str, Any]) -> str:
    """Return a run's name with every option that is not as its configuration file has it.

    Two runs of one name differ in what was chosen or set, so that this tells them apart.

    Parameters
    ----------
    name : the run's short name: its data set, learner, intervention and method.
    stored : the run's configuration, as :func:`identity_of` returns it.
    """
    usual = usual_choices()
    main_groups = ("dataset", "learner", "intervention", "method")
    parts = []
    for group in dict.fromkeys([*main_groups, *COMPONENTS]):
        chosen = str(stored[group]["name"])
        if group not in main_groups and chosen != usual.get(group):
            parts.append(chosen)
        as_usual = {**stored[group], **configurations(group).get(chosen, {})}
        parts += _unlike(as_usual, stored[group])
    settings = {option: stored.get(option) for option in ("seed", "protect", "headline")}
    return ", ".join([name, *parts, *_unlike({**dict.fromkeys(settings), **usual}, settings)])


def _unlike(usual: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Return the options that are not as usual, each as one word."""
    return [f"{k}={_short(value)}" for k, value in options.items() if value != usual[k]]


_LONGEST = 40


def _short(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@cache
def usual_choices() -> dict[str, Any]:
    """Return the choices and options of a run by default."""
    defaults = yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8"))
    chosen = [default for default in defaults.pop("defaults") if isinstance(default, dict)]
    return {**defaults, **{name: value for default in chosen for name, value in default.items()}}


# Reads choices and experiments from ``conf``, and writes the commands that make runs again.

REPEATS = "split.repeats"
_MERGED = ("method", "intervention", "learner")
_NAMED = ("dataset", "method")  # commands name these even if they are the defaults


@cache
def _declared(group: str, option: str) -> dict[str, Any]:
    """Read a choice's name and options, which is far faster than composing; empty without one."""
    options = options_in(group, option)
    if not options.pop("_target_", ""):
        return {}
    return {**options, "name": option}


# The options that a sweep fixes, such as ``split.train``, with their values; the groups and options
# that it varies, with their values by their texts; and options of a group that varies that have the
# same value in every choice.
Experiment: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]], Mapping[str, Any]]


class Presets:
    """Our configurations and the user's own, each composed once."""

    def __init__(self) -> None:
        self._experiments: dict[str, Experiment] = {}

    def choice(self, group: str, option: str) -> dict[str, Any]:
        """Return the options of a group's choice; empty if there is no such choice."""
        return _options_of({group: _declared(group, option)}, [group])

    def experiment(self, name: str) -> Experiment:
        """Return an experiment's sweep."""
        if name not in self._experiments:
            from hydra import compose, initialize_config_dir

            words = [*own_folders(), f"experiment={name}"]
            with initialize_config_dir(str(CONF.resolve()), version_base="1.3"):
                composed = compose("config", words, return_hydra_config=True)
            sweep = composed.hydra.sweeper.get("params") or {}
            varied = {str(key): _swept(str(key), str(value)) for key, value in sweep.items()}
            options = _options_of(identity_of(composed)[1], IDENTITY)
            fixed = {key: options[key] for key in options if not key.startswith(tuple(varied))}
            changed = {
                key: options[key]
                for group in varied
                for key, value in self.choice(group, str(options.get(f"{group}.name"))).items()
                if options.get(key, value) != value and key not in varied
            }
            self._experiments[name] = fixed, varied, changed
        return self._experiments[name]

    def runs_of_all(self, name: str, runs: Mapping[str, Run]) -> set[str]:
        """Return the ids of the runs that answer an experiment, or one of a folder of them.

        Raises
        ------
        UserError : neither an experiment nor a folder.
        """
        names = files_of("experiment")
        members = [name] if name in names else experiments_in(name)
        if not members:
            raise unknown_name("experiment", name, names)
        return {run for member in members for run in self.runs_of(member, runs)}

    def runs_of(self, name: str, runs: Mapping[str, Run]) -> dict[str, tuple[dict[str, str], Run]]:
        """Return the runs that answer an experiment, with what they chose, by run id.

        A run may have drawn fewer splits than the experiment asks for; of those that differ in
        this alone, the one of most splits answers.
        """
        run_of_choices: dict[tuple[str, ...], tuple[dict[str, str], Run]] = {}
        params: dict[str, Any] = {}  # the words that its files, in their order, sweep over
        for part in parts_of("experiment", name):
            params |= part.get("hydra", {}).get("sweeper", {}).get("params", {})
        swept = {key: _swept(key, str(text)) for key, text in params.items() if "." not in key}
        for run in runs.values():
            # Composing takes a tenth of a second, and is not done where no run has such choices.
            if any(run.choices.get(key) not in (None, *texts) for key, texts in swept.items()):
                continue
            chosen = self._choices_of(self.experiment(name), run)
            if chosen is not None:
                key = tuple(chosen.values())
                if key not in run_of_choices or _repeats(run) > _repeats(run_of_choices[key][1]):
                    run_of_choices[key] = chosen, run
        return {run.id: (chosen, run) for chosen, run in run_of_choices.values()}

    def _choices_of(self, experiment: Experiment, run: Run) -> dict[str, str] | None:
        """Return the choices of a run in the sweep, or None if it is none of its jobs."""
        # An option that has come since is not in a run's configuration: it had its default.
        options = _options_of(run.config, IDENTITY)
        fixed, varied, changed = experiment
        if any(options.get(key, v) != v for key, v in fixed.items() if key != REPEATS):
            return None
        chosen = {}
        for name, values in varied.items():
            if "." in name or name in options:
                found = (text for text, value in values.items() if value == options.get(name))
                text = next(found, "")
            else:
                # Its choice for a group, unless it has other options than that.
                text = str(run.choices.get(name, ""))
                preset = self.choice(name, text)
                expected = {
                    key: changed.get(key, v) for key, v in preset.items() if key not in varied
                }
                if not preset or any(options.get(key, v) != v for key, v in expected.items()):
                    return None
            if text not in values:
                return None
            chosen[name] = text
        return chosen

    @cached_property
    def default_choices(self) -> dict[str, str]:
        """The choice that each group has if a command names none."""
        usual = usual_choices()
        groups = [group for group in COMPONENTS if group in usual and group not in _NAMED]
        return {group: str(usual[group]) for group in groups}

    def stored_options(self, run: Run) -> dict[str, dict[str, Any]]:
        """Return the components of a stored run, each with its name and options, by group.

        What is stored may come from a stranger: it chooses components of `conf` by their names, and
        sets options that they declare to values of a size that somebody may have meant.

        Raises
        ------
        UserError : it does anything else.
        """
        components = {group: dict(run.config[group]) for group in COMPONENTS if group in run.config}
        for group, options in components.items():
            where = f"run {run.id}: {group}={options['name']}"
            declared = _declared(group, str(options["name"]))
            if not declared:
                raise UserError(f"{where} is no component that is installed here")
            for name, value in options.items():
                if name not in declared and name != VERIFIED:
                    raise UserError(f"{where} has no option '{name}': other code made the run")
                usual = declared.get(name)
                given = [option for option in (value, usual) if option is not None]
                if len({isinstance(option, dict) for option in given}) > 1:
                    raise UserError(f"{where}: {group}.{name} is of another type than it declares")
                most = max(_LARGE, _TIMES * _largest(usual))
                if name != "seed" and _largest(value) > most:
                    raise UserError(f"{where}: {group}.{name} is too large to be computed again")
        return components

    def overrides(self, run: Run) -> dict[str, str]:
        """Return the words of a run's command: its choices, and options other than defaults.

        Raises
        ------
        UserError : it is of components or options that are not installed here.
        """
        self.stored_options(run)
        options = _options_of(run.config, IDENTITY)
        chosen = run.choices
        chosen["dataset"] = chosen["dataset"].removesuffix("" if run.verified else UNVERIFIED)
        words = dict(chosen)
        preset: dict[str, Any] = {"seed": 0, "protect": None, "headline": None}
        consistency = "consistency", self.default_choices["consistency"]
        for group, option in [*chosen.items(), consistency]:
            preset |= self.choice(group, option)
        for key, value in options.items():
            if key in preset and preset[key] != value:
                words[key] = hydra_word(value)
        if not run.verified:
            words["data.verify"] = "false"
        return self._unusual(words)

    def _unusual(self, words: Mapping[str, str]) -> dict[str, str]:
        """Return the words without the choices that are the default."""
        usual = self.default_choices
        return {name: text for name, text in words.items() if usual.get(name) != text}

    def commands_of(self, runs: Sequence[Run]) -> list[str]:
        """Return the commands that make runs again, and a comment for each run that has none."""
        words, without = [], []
        for run in runs:
            try:
                words.append(self.overrides(run))
            except UserError as error:
                without.append(f"# {error}")
        return [*self.commands(words), *without]

    def commands(self, jobs: Sequence[Mapping[str, str]]) -> list[str]:
        """Return command lines for jobs; those that differ in one group are merged to a sweep."""
        merged = [dict(job) for job in jobs]
        for group in _MERGED:
            sweeps: dict[tuple[tuple[str, str], ...], dict[str, None]] = {}
            for one in merged:
                value = one.pop(group, self.default_choices.get(group, ""))
                sweeps.setdefault(tuple(one.items()), {})[value] = None
            merged = [{**dict(job), group: ",".join(values)} for job, values in sweeps.items()]
        return [self._command(job) for job in merged]

    def _command(self, job: Mapping[str, str]) -> str:
        """Return the command line of a job, without what is the default."""
        leading = {name: job[name] for name in ("dataset", *_MERGED) if name in job}
        options = self._unusual({**leading, **job})
        sweep = ["-m"] if any("," in options.get(group, "") for group in _MERGED) else []
        words = [f"{name}={text}" for name, text in options.items()]
        return shlex.join(["fairbench", "run", *sweep, *words])


@cache
def _swept(name: str, text: str) -> dict[str, Any]:
    """Return the values of a sweep's word as Hydra reads it, by their texts; none of an interval.

    Raises
    ------
    UserError : Hydra does not understand it.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parse = OverridesParser.create().parse_override
    try:
        word = parse(f"{name}={text}")
        if not word.is_sweep_override():
            return {word.get_value_element_as_str(): word.value()}
        texts = [] if word.is_interval_sweep() else word.sweep_string_iterator()
        return {text: parse(f"{name}={text}").value() for text in texts}
    except HydraException as error:
        reason = f"an experiment sweeps {name}={text}, which is no list of values"
        raise UserError(reason) from error


def experiments_in(folder: str) -> list[str]:
    """Return the names of the experiments of a folder of ``conf/experiment``."""
    return [name for name in files_of("experiment") if name.startswith(f"{folder}/")]


def own_folders() -> list[str]:
    """Return the word that adds the user's folders to Hydra's search path; empty if none."""
    paths = [f"'file://{folder / 'conf'}'" for folder in folders()[1:]]
    return [f"hydra.searchpath=[{','.join(paths)}]"] if paths else []


def _options_of(config: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any]:
    """Return some groups of a configuration option by option: ``{"split.repeats": 3, ...}``."""
    return flat({name: config[name] for name in groups if name in config})


def _repeats(run: Run) -> int:
    return int(run.config["split"].get("repeats", 1))


# Whole numbers, which are sizes, that are still computed with; and so many times the usual value.
_LARGE, _TIMES = 100_000, 1000


# Options that name a file, which is read where a command names it, and not where a record does.
_NAMES_FILE = ("path", "checkpoint")


def check_files_named(run: Run, groups: Sequence[str], typed: Mapping[str, str]) -> None:
    """Refuse a run whose configuration names a file that the command does not name itself.

    Parameters
    ----------
    groups : the components that are made of the configuration.
    typed : options of the command line, such as ``dataset.path``, as they are typed.

    Raises
    ------
    UserError : it does; the message says which option to add.
    """
    for option, value in _options_of(run.config, groups).items():
        if option.rpartition(".")[2] in _NAMES_FILE and value and typed.get(option) != value:
            missing = shlex.quote(f"{option}={value}")
            raise UserError(said("experiments", "names_file", run=run.id, option=missing))


def _largest(value: Any) -> int:
    """Return the largest whole number of a value, as sizes are; 0 if there is none."""
    if isinstance(value, list | tuple | Mapping):
        items = value.values() if isinstance(value, Mapping) else value
        return max(map(_largest, items), default=0)
    return abs(value) if isinstance(value, int) else 0
