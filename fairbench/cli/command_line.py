"""Turns a command line into composed configurations: one for a run, many for a sweep.

Hydra reads the words and composes; it takes about 0.15 s a composition. A sweep composes once,
reads the file of every option that it chooses, such as ``learner=svm``, and puts its jobs together
from these; an option whose file Hydra does more with than to read it is composed. The other words
(``seed=3``) are set on the composed configuration, as Hydra itself sets them.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, cached_property, lru_cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fairbench.cli.command import GROUPS, items, options_of_run
from fairbench.components import CONF, files_of, parts_of
from fairbench.core.errors import UserError, nearest, note, unknown_name
from fairbench.core.text import said, shortened
from fairbench.experiments.configuration import Config, experiments_in, own_folders
from fairbench.experiments.execute import Executor, executor

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig


TUNE = "tune"  # the sweeper that tunes
# Hydra's own words that are heeded by any run, and by a sweep.
_OF_A_RUN = ("hydra.searchpath=",)
_OF_A_SWEEP = (
    *_OF_A_RUN, "hydra/launcher=", "hydra/sweeper=", "hydra.launcher.", "hydra.sweeper.",
    "hydra.sweep.dir=",
)  # fmt: skip
_KEPT = 256  # composed configurations that are cached
_MOST_JOBS = 1_000_000  # of a sweep, whose configurations all are in memory


# A configuration without Hydra's own part, as plain values, and each group's chosen option.
Composed: TypeAlias = tuple[dict[str, Any], dict[str, str]]


@contextmanager
def hydra_of() -> Iterator[None]:
    """Return a context in which Hydra composes from the folder of configurations.

    Raises
    ------
    UserError : one sentence on what Hydra finds wrong with a command line.
    """
    from hydra import initialize_config_dir

    _prefer_own_launchers()
    with _explain_hydra_errors(), initialize_config_dir(str(CONF.resolve()), version_base="1.3"):
        yield


def _prefer_own_launchers() -> None:
    """Use the launchers of this checkout rather than those of plugins with the same names."""
    from hydra.core.config_store import ConfigStore
    from hydra.core.plugins import Plugins

    Plugins.instance()  # finding the plugins fills the store
    launchers = ConfigStore.instance().repo["hydra"]["launcher"]
    for path in (CONF / "hydra" / "launcher").glob("*.yaml"):
        launchers.pop(path.name, None)


def show_composed(arguments: Sequence[str]) -> int:
    """Let Hydra show its help, or a composed configuration."""
    import hydra

    _prefer_own_launchers()
    words = list(arguments)
    first = next((i for i, word in enumerate(words) if "=" in word), len(words))
    words[first:first] = own_folders()  # words of Hydra's command line stand together
    sys.argv = ["run.py", *words]
    path = str(CONF.resolve())
    try:
        with _explain_hydra_errors():
            hydra.main(version_base="1.3", config_path=path, config_name="config")(lambda _: None)()
    except SystemExit as ended:  # its way to end after --version
        return int(ended.code or 0)
    return 0


@contextmanager
def _explain_hydra_errors() -> Iterator[None]:
    """Turn errors of Hydra about a command line into one sentence.

    Raises
    ------
    UserError : the sentence.
    """
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_hydra_error_sentence(error)) from error


def _hydra_error_sentence(error: Exception) -> str:
    """Return an error of Hydra about a command line as one sentence."""
    missing = getattr(error, "missing_cfg_file", None)
    if missing:
        # Groups of Hydra's own have a slash in their names, as options of an experiment have.
        split = str.rpartition if str(missing).startswith("hydra/") else str.partition
        group, _, name = split(str(missing), "/")
        if not name:
            return f"{group}= has no value: write {group}=NAME"
        listed_by = f"fairbench explain {group}" if group in GROUPS else ""
        return str(unknown_name(group, name, files_of(group), listed_by=listed_by))
    word = getattr(error, "override", None)
    if word is not None:
        name, equals, _ = str(word).partition("=")
        if not equals and (CONF / name).is_dir():
            return f"'{word}' has no value: write {word}=NAME"
        if not equals and (groups := [group for group in GROUPS if name in files_of(group)]):
            meant = " or ".join(f"{group}={name}" for group in groups)
            return f"'{word}' is no option: did you mean {meant}?"
        quoted = f", and quote a value with signs twice, such as \"{name}='...'\"" if equals else ""
        return f"'{word}' was not understood: write name=value{quoted}"
    key = re.search(r"Could not override '([^']+)'", str(error))
    if key:
        return f"unknown option '{key.group(1)}'"
    return " ".join(str(error).split())


_EXPERIMENT = "experiment="


def command_lines(words: Sequence[str], *, sweep: bool) -> list[CommandLine]:
    """Return a command line to be composed, or several where it names a folder of experiments.

    ``experiment=atlas`` stands for every file of ``conf/experiment/atlas``, in the order of their
    names; each of them is a sweep of its own, and the other words apply to all.

    Raises
    ------
    UserError : a folder, where not a sweep but one run is asked for.
    """
    folder = next((word for word in words if _is_folder(word)), None)
    if folder is None:
        line = CommandLine(words, sweep=sweep)
        if not sweep and line.swept:
            note(f"this is one run; the experiment sweeps {', '.join(line.swept)}: add -m for all")
        return [line]
    if not sweep:
        raise UserError(f"{folder} is a folder of sweeps: add -m to run them all")
    return [
        CommandLine([f"{_EXPERIMENT}{name}" if w == folder else w for w in words], sweep=True)
        for name in experiments_in(folder.removeprefix(_EXPERIMENT).strip("/"))
    ]


def _is_folder(word: str) -> bool:
    name = word.removeprefix(_EXPERIMENT).strip("/")
    return word != name and bool(name and experiments_in(name))


class CommandLine:
    """A command line that has been read, and can be composed within `hydra_of`."""

    def __init__(self, words: Sequence[str], *, sweep: bool) -> None:
        """Sort the words into those of Hydra, fixed choices and options, and compose them."""
        self.parse = cache(self._parse)
        self._part = cache(self._find_part)
        self._composed = lru_cache(_KEPT)(self._compose_choices)
        words = [_with_commas(_without_plus(word)) for word in words]
        hydra = [word for word in words if self.parse(word).is_hydra_override()]
        for word in hydra:
            if not word.startswith(_OF_A_SWEEP if sweep else _OF_A_RUN):
                raise UserError(said("cli", "hydra_not_heeded", word=shortened(word)))
        run_words = [word for word in words if word not in hydra]
        fixed = [
            w for w in run_words if self._is_choice(w) and not self.parse(w).is_sweep_override()
        ]
        self._fixed = [*hydra, *fixed]
        presets = self._presets if sweep else []
        self.hydra = tuple(hydra)
        self.tuned = sweep and self._whole.hydra.runtime.choices["hydra/sweeper"] == TUNE
        self.spaces: dict[str, Override] = {}  # what is tuned, by name
        self.jobs = self._applicable(list(self._jobs([*presets, *run_words])))
        if not sweep and len(self.jobs) > 1:
            swept = next(word for word in run_words if self.parse(word).is_sweep_override())
            raise UserError(said("cli", "several_values_of_run", word=swept))

    def compose(self, job: Sequence[str]) -> dict[str, Any]:
        """Compose one job, as plain values; of Hydra's part it has the choices.

        Jobs share the parts of the configuration that are equal.

        Raises
        ------
        UserError : an option that the configuration does not have.
        """
        choices = tuple(word for word in job if self._is_choice(word))
        composed, chosen = self._composed(choices)
        config = dict(composed)
        for word in job:
            if word not in choices:
                parsed = self.parse(word)
                _set(config, str(parsed.key_or_group), parsed.value())
        if any("${" in word for word in job):
            from omegaconf import OmegaConf

            resolved: Any = OmegaConf.to_container(OmegaConf.create(config), resolve=True)
            config = dict(resolved)
        return {**config, "hydra": {"runtime": {"choices": chosen}}}

    @property
    def swept(self) -> list[str]:
        """The options of the experiment with several values, which a sweep would run all."""
        set_names = {self.parse(word).get_key_element() for job in self.jobs for word in job}
        presets = map(self.parse, self._presets)
        swept_names = [preset.get_key_element() for preset in presets if preset.is_sweep_override()]
        return [name for name in swept_names if name not in set_names]

    def of_hydra(self, part: str) -> Any:
        """Return Hydra's own settings of a part, such as ``launcher``, as the first job has them.

        A part that is one value, such as ``sweep.dir``, is returned as it is.
        """
        from omegaconf import OmegaConf

        found: Any = OmegaConf.select(self._first.hydra, part)
        return OmegaConf.to_container(found, resolve=True) if OmegaConf.is_config(found) else found

    def executor(self, config: Config) -> Executor:
        """Return the executor of the chosen launcher, for a job's configuration."""
        launcher = self.of_hydra("launcher")
        launcher.pop("_target_", None)  # Hydra's own launchers are not used
        return executor(launcher, config["n_jobs"], config["timeout_min"])

    def _parse(self, word: str) -> Override:
        """Return a word as Hydra reads it.

        Raises
        ------
        UserError : it adds or deletes an option that every run has.
        """
        from hydra.core.global_hydra import GlobalHydra
        from hydra.core.override_parser.overrides_parser import OverridesParser

        parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
        try:
            (parsed,) = parser.parse_overrides([word])
        except ValueError as error:
            raise UserError(said("cli", "many_digits", word=shortened(word))) from error
        if parsed.is_add() or parsed.is_force_add() or parsed.is_delete():
            raise UserError(f"'{word}': write name=value, without + or ~, for what there is")
        return parsed

    def _is_choice(self, word: str) -> bool:
        """Return whether a word chooses an option of a group, and does not set a value."""
        parsed = self.parse(word)
        is_group = (CONF / parsed.key_or_group).is_dir() or parsed.package is not None
        return is_group and not isinstance(parsed.value(), dict)

    def _jobs(self, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield the product of all values; a word replaces earlier ones about the same name."""
        options: dict[str, list[str]] = {}
        for word in words:
            parsed = self.parse(word)
            key = parsed.get_key_element()
            self.spaces.pop(key, None)
            if not parsed.is_sweep_override():
                options[key] = [word]
            elif self.tuned:
                options.pop(key, None)
                self.spaces[key] = parsed
            elif parsed.is_discrete_sweep():
                values = itertools.islice(parsed.sweep_string_iterator(), _MOST_JOBS + 1)
                options[key] = [f"{key}={value}" for value in values]
            else:
                raise UserError(said("cli", "interval_of_run", word=word, key=key))
        if (jobs := prod(map(len, options.values()))) > _MOST_JOBS:
            raise UserError(said("cli", "sweep_too_long", jobs=jobs, most=_MOST_JOBS))
        yield from itertools.product(*options.values())

    def _applicable(self, jobs: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Return the jobs without options that the component of the job does not have.

        If learners are swept, for example, an option is set for those that have it, and a note says
        which have not. Equal jobs are merged.

        Raises
        ------
        UserError : an option that none of the choices has.
        """
        words = {word for job in jobs for word in job if self._is_choice(word)}
        counts = Counter(self.parse(word).get_key_element() for word in words)
        varied = {group for group, number in counts.items() if number > 1}
        if not varied:
            return list(dict.fromkeys(jobs))
        having, lacking = dict[str, dict[str, None]](), dict[str, dict[str, None]]()
        valid: dict[str, set[str]] = {}
        applicable: dict[tuple[str, ...], None] = {}
        for job in jobs:
            config, chosen = self._composed(tuple(filter(self._is_choice, job)))
            job_words = []
            for word in job:
                name = str(self.parse(word).key_or_group)
                group, _, option = name.partition(".")
                if not option or group not in varied:
                    job_words.append(word)
                    continue
                part = value_at(config, name.rpartition(".")[0])
                has_option = isinstance(part, Mapping) and name.rpartition(".")[2] in part
                (having if has_option else lacking).setdefault(name, {})[chosen[group]] = None
                valid.setdefault(name, set()).update(_options(config, name))
                job_words += [word] if has_option else []
            applicable[tuple(job_words)] = None
        for name, without_option in lacking.items():
            if name not in having:
                raise unknown_name("option", name, valid[name])
            sentence = "options_not_had" if len(without_option) > 1 else "option_not_had"
            with_it, without = map(", ".join, (having[name], without_option))
            note(said("cli", sentence, name=name, having=with_it, lacking=without))
        return list(applicable)

    # Configurations are composed once for every choice, and put together from its parts.

    @cached_property
    def _whole(self) -> DictConfig:
        """The configuration of the shared words, with Hydra's own part."""
        return _compose(self._fixed)

    @cached_property
    def _first(self) -> DictConfig:
        """The configuration of the first job, with Hydra's own part."""
        from omegaconf import open_dict

        config, first = deepcopy(self._whole), self.compose(self.jobs[0])
        with open_dict(config):
            config.update({key: first[key] for key in first if key != "hydra"})
        return config

    @cached_property
    def _base(self) -> Composed:
        """The configuration of the shared words."""
        return _without_hydra(self._whole)

    @property
    def _presets(self) -> list[str]:
        """The words that an experiment sweeps over, and those that a sweeper sets by default."""
        params = self._whole.hydra.sweeper.get("params") or {}
        return [f"{name}={value}" for name, value in params.items()]

    def _compose_choices(self, choices: tuple[str, ...]) -> Composed:
        """Compose the shared words and some choices."""
        parts = [self._part(word) for word in choices if word not in self._fixed]
        if None in parts:
            return _without_hydra(_compose([*self._fixed, *choices]))
        config, names = self._base
        for part_config, part_names in filter(None, parts):
            config, names = config | part_config, names | part_names
        return config, names

    def _find_part(self, word: str) -> Composed | None:
        """Return a group's part and the option's name; None if the choice changes other parts."""
        group, _, option = word.partition("=")
        if (part := self._plain_part(group, option)) is not None:
            return {group: part}, {group: option}
        alone = config, names = _without_hydra(_compose([*self._fixed, word]))
        if group not in config or _rest(alone, group) != _rest(self._base, group):
            return None
        return {group: config[group]}, {group: names.get(group, "")}

    def _plain_part(self, group: str, option: str) -> dict[str, Any] | None:
        """Return what an option's file has, where Hydra would do no more than to read it.

        That is where the file names no defaults, no package and no other value, and where neither
        the experiment nor the configuration that it belongs to sets values of the group.
        """
        file = files_of(group).get(option)
        if file is None or group not in self._base[0]:
            return None
        above = [_values_in(CONF / "config.yaml")]
        if (experiment := self._base[1].get("experiment", "None")) != "None":
            above += parts_of("experiment", experiment)
        text, part = file.read_text(encoding="utf-8"), _values_in(file)
        is_plain = "${" not in text and "@package" not in text and "defaults" not in part
        return dict(part) if is_plain and not any(group in other for other in above) else None


@lru_cache(_KEPT)
def _values_in(file: Path) -> Mapping[str, Any]:
    from omegaconf import OmegaConf

    values: Any = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
    return values


def choices_in_brackets(word: str) -> tuple[str, ...]:
    """Return the choices that a word lists in brackets, such as ``method=[baseline,ensemble]``.

    A choice is one name, so that a list of several can only mean a sweep. For any other word the
    result is empty.

    Raises
    ------
    UserError : the list is empty, or a bracket is unmatched.
    """
    name, _, text = word.partition("=")
    if not (name and text.startswith("[") and (CONF / name).is_dir()):
        return ()
    if not (choices := items(text, name)):
        raise UserError(f"{word} names no {name}: write {name}=NAME, or {name}=[NAME,NAME]")
    return choices


def _without_plus(word: str) -> str:
    """Return a word that sets what there is, or adds to an option's mapping, without Hydra's +."""
    inner = word.partition("=")[0].count(".") > 1
    return word.lstrip("+") if inner else word.removeprefix("++")


def _with_commas(word: str) -> str:
    """Return a word as Hydra reads it: a list of choices without brackets."""
    choices = choices_in_brackets(word)
    return f"{word.partition('=')[0]}={','.join(choices)}" if choices else word


def value_at(config: Mapping[str, Any], name: str) -> Any:
    """Return what a configuration has at a dotted name; None if it has nothing there."""
    node: Any = config
    for key in name.split("."):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def _set(config: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a configuration, copying the part that it belongs to.

    Raises
    ------
    UserError : it has no such option.
    """
    part = value_at(config, name)
    if isinstance(value, Mapping) and isinstance(part, Mapping) and part:
        for key, inner_value in value.items():
            _set(config, f"{name}.{key}", inner_value)
        return
    *path, last = name.split(".")
    node: Any = config
    for key in path:
        inner = node.get(key)
        if not isinstance(inner, dict):
            raise unknown_name("option", name, _options(config, name))
        node[key] = node = dict(inner)
    if last not in node and len(path) < 2:  # an option's own mapping has the names that it is given
        if valid := _options(config, name):
            raise unknown_name("option", name, valid)
        raise UserError(said("cli", "group_without_options", name=name, group=path[0]))
    node[last] = value


def _options(config: Mapping[str, Any], name: str) -> set[str]:
    """Return the options of the part of a configuration that `name` seems to mean."""
    part, dot, _ = name.partition(".")
    if dot and isinstance(config.get(part), dict):
        return {f"{part}.{key}" for key in config[part] if key not in ("_target_", "name")}
    parts = [str(key) for key in config if isinstance(config[key], dict)]
    if dot and (near := nearest(part, parts, 1)):
        return _options(config, f"{near[0]}.")
    return set(options_of_run())


def _compose(words: Sequence[str]) -> DictConfig:
    from hydra import compose

    return compose("config", [*own_folders(), *words], return_hydra_config=True)


def _without_hydra(whole: DictConfig) -> Composed:
    from omegaconf import OmegaConf

    choices = {str(key): str(value) for key, value in whole.hydra.runtime.choices.items()}
    masked = OmegaConf.masked_copy(whole, [str(key) for key in whole if key != "hydra"])
    config: Any = OmegaConf.to_container(masked, resolve=True)
    for group in sorted(choices.keys() & config.keys()):
        if not isinstance(value := config[group], dict):
            raise UserError(said("cli", "value_of_group", group=group, value=shortened(str(value))))
    return config, choices


def _rest(composed: Composed, group: str) -> list[dict[str, Any]]:
    """Return all but one group of a configuration and its choices."""
    return [{key: part for key, part in parts.items() if key != group} for parts in composed]
