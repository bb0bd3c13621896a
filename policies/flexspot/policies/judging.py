"""Rules, and the settings of rules: levels, parameters, locked rules and suppressions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast, get_args

from flexspot.capacity.values.errors import nearest
from flexspot.policies.inventory.views import Inventory, View
from flexspot.policies.values.field import plain
from flexspot.policies.values.finding import ConfiguredSuppression, read_suppression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from flexspot.capacity.values.verdict import Outcome, Severity


class Level(StrEnum):
    """Effect of a violation on a deployment.

    MANDATORY: preview and `up` stop. ADVISORY: it is reported. DISABLED: the rule does not run.
    """

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    DISABLED = "disabled"


class Cloud(StrEnum):
    """A cloud that a rule applies to."""

    GKE = "gke"
    EKS = "eks"


Setting = int | str | tuple[str, ...]
"""The value of a parameter."""


@dataclass(frozen=True)
class Parameter:
    """A number, a text or a list of texts that a user of the rule may set. The type of the default decides its type."""

    name: str
    default: Setting
    meaning: str

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the parameter."""
        text = {"type": "string", "minLength": 1}
        match self.default:
            case int():
                form: dict[str, Any] = {"type": "integer", "minimum": 0, "default": self.default}
            case str():
                form = {**text, "default": self.default}
            case _:
                form = {"type": "array", "items": text, "minItems": 1, "default": list(self.default)}
        return {**form, "description": self.meaning}

    def read(self, written: Any) -> Setting:
        """Return the setting that a person wrote. Raises ValueError with the allowed form."""
        match self.default:
            case int():
                if isinstance(written, int) and not isinstance(written, bool) and written >= 0:
                    return written
                raise ValueError("a whole number of 0 or more")
            case str():
                if isinstance(written, str) and written:
                    return written
                raise ValueError("a string")
            case _:
                texts = cast("list[Any]", written) if isinstance(written, list) else []
                if texts and all(isinstance(text, str) and text for text in texts):
                    return tuple(texts)
                raise ValueError("a list of at least one string")


@dataclass(frozen=True)
class Parameters:
    """The settings of one rule, by parameter name, including defaults."""

    settings: Mapping[str, Setting]
    written: frozenset[str] = frozenset()
    """Names of the parameters that a user set."""

    def is_set(self, name: str) -> bool:
        """Return whether a user set the parameter, even to its default."""
        return name in self.written

    def number(self, name: str) -> int:
        """Return a parameter whose default is a number."""
        return cast("int", self.settings[name])

    def text(self, name: str) -> str:
        """Return a parameter whose default is a text."""
        return cast("str", self.settings[name])

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a parameter whose default is a list of texts."""
        return cast("tuple[str, ...]", self.settings[name])


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule.

    A rule decides only what is provable. flexspot.policies.core handles partial objects, and views that may turn out to be of another kind.
    """

    code: str
    """Short id that never changes."""
    severity: Severity
    why: str
    """Reason for the rule, shown with a violation."""
    remediation: str
    """Advice, shown with a violation."""
    link: str
    """Source of the rule's facts, shown with a violation."""
    sources: tuple[str, ...] = ()
    """Sources of other facts."""
    parameters: tuple[Parameter, ...] = ()
    level: Level = Level.MANDATORY
    clouds: tuple[Cloud, ...] = (Cloud.GKE, Cloud.EKS)
    name: str = ""
    """The problem, in kebab-case."""
    summary: str = ""
    """One line about the problem that it finds."""
    looks_at: tuple[type[View], ...] = ()
    """Kinds of views that it judges."""
    judge: Callable[..., Outcome] | None = None
    """Function that judges one view of these kinds."""
    among: bool = False
    """True if `judge` also takes the inventory, to compare the view with others."""

    def __call__(self, judge: Callable[..., Outcome]) -> Rule:
        """Complete the rule by its function: its name, the first line of its docstring, and its parameters' types."""
        kind, *others = (kind for parameter, kind in judge.__annotations__.items() if parameter != "return")
        return replace(
            self,
            name=judge.__name__.replace("_", "-"),
            summary=(judge.__doc__ or "").partition("\n")[0],
            looks_at=get_args(kind) or (kind,),
            among=Inventory in others,
            judge=judge,
        )

    @property
    def page(self) -> str:
        """The rule's page in this repository, generated from the rule."""
        return f"docs/rules/{self.name}.md"

    def defaults(self) -> Parameters:
        """Return the rule's parameters as shipped."""
        return Parameters({parameter.name: parameter.default for parameter in self.parameters})


LEVEL, _LOCKED = "level", "locked"

SUPPRESSIONS = "suppressions"
"""The only key of the settings that is not a rule: the list of suppressions."""

_ENTRY = {"rule": True, "object": True, "reason": True, "until": False, "by": False}
"""Keys of a suppression, and whether each is required."""

_ALLOWED = {**dict.fromkeys(_ENTRY, "a string"), "until": "a date such as 2026-12-31"}


def _today() -> date:
    return datetime.now(tz=UTC).date()


@dataclass(frozen=True)
class Settings:
    """Levels and parameters by rule name. A rule without an entry uses its own defaults."""

    levels: Mapping[str, Level] = field(default_factory=dict[str, Level])
    values: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict[str, "Mapping[str, Setting]"])
    problems: tuple[str, ...] = ()
    """Messages for the person who wrote the settings."""
    locked: frozenset[str] = frozenset()
    """Names of rules that must not be suppressed."""
    suppressions: tuple[ConfiguredSuppression, ...] = ()
    today: date = field(default_factory=_today)
    """Suppressions that ended before this day no longer count."""
    custom: frozenset[str] = frozenset()
    """Names of an organisation's own rules, which suppressions may name, too."""

    def locks(self, rule: Rule) -> bool:
        """Return whether `rule` must not be suppressed."""
        return rule.name in self.locked

    def level(self, rule: Rule) -> Level:
        """Return the effective level of `rule`."""
        return self.levels.get(rule.name, rule.level)

    def parameters(self, rule: Rule) -> Parameters:
        """Return the parameters of `rule`, with defaults for those that are not set."""
        written = self.values.get(rule.name, {})
        return Parameters({**rule.defaults().settings, **written}, frozenset(written))


DEFAULTS = Settings()


def schema(rules: Iterable[Rule]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of the settings: a level, or a level and parameters, for each rule; and the suppressions."""
    levels = {"type": "string", "enum": [level.value for level in Level]}
    of_rules = {
        rule.name: {
            "description": f"{rule.why} Default level: {rule.level}.",
            "oneOf": [levels, {"type": "object", "additionalProperties": False, "properties": {LEVEL: levels, **policy_schema(rule)}}],
        }
        for rule in rules
    }
    entry = {
        "type": "object",
        "additionalProperties": False,
        "required": [key for key, needed in _ENTRY.items() if needed],
        "properties": {key: {"type": "string", "minLength": 1} for key in _ENTRY},
    }
    about = (
        "Accepted violations: of which rule, by which objects (KIND/NAMESPACE/NAME, with * for any text), why, until which day, by whom."
    )
    return {**of_rules, SUPPRESSIONS: {"type": "array", "description": about, "items": entry}}


def policy_schema(rule: Rule) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of one rule's settings in addition to its level: whether it is locked, and its parameters."""
    locked = {"type": "boolean", "description": "True if the rule must not be suppressed.", "default": False}
    return {_LOCKED: locked, **{each.name: each.schema() for each in rule.parameters}}


def read_settings(written: Mapping[str, Any], rules: Iterable[Rule]) -> Settings:
    """Return the settings that `{rule: level}` and `{rule: {level: ..., parameter: ...}}` spell.

    Never raises: an invalid setting keeps its default and is reported in `problems`, together with all others.
    """
    known = {rule.name: rule for rule in rules}
    levels: dict[str, Level] = {}
    values: dict[str, dict[str, Setting]] = {}
    locked: set[str] = set()
    problems: list[str] = []
    suppressions: list[ConfiguredSuppression] = []
    for name, setting in cast("dict[str, Any]", plain(dict(written))).items():
        if name == SUPPRESSIONS:
            suppressions = _suppressions(setting, known, problems)
            continue
        if name not in known:
            problems.append(unknown_name(name, name, known))
            continue
        entries = cast("dict[str, Any]", setting) if isinstance(setting, dict) else {LEVEL: setting}
        parameters = {parameter.name: parameter for parameter in known[name].parameters}
        for key, value in entries.items():
            try:
                if key == LEVEL:
                    levels[name] = _level(value)
                elif key == _LOCKED:
                    locked |= {name} if _truth(value) else set()
                elif key in parameters:
                    values.setdefault(name, {})[key] = parameters[key].read(value)
                else:
                    problems.append(unknown_name(f"{name}.{key}", key, [LEVEL, *parameters]))
            except ValueError as error:
                problems.append(f"{name}.{key}: {value!r} is not allowed; allowed: {error}")
    return Settings(levels, values, tuple(problems), frozenset(locked), tuple(suppressions))


def _suppressions(written: Any, known: Iterable[str], problems: list[str]) -> list[ConfiguredSuppression]:
    if not isinstance(written, list):
        problems.append(f"{SUPPRESSIONS}: must be a list of entries with {', '.join(_ENTRY)}")
        return []
    found: list[ConfiguredSuppression] = []
    for place, each in enumerate(cast("list[Any]", written)):
        path = f"{SUPPRESSIONS}.{place}"
        if not isinstance(each, dict):
            problems.append(f"{path}: {each!r} is not allowed; allowed: an entry with {', '.join(_ENTRY)}")
            continue
        entry = cast("dict[str, Any]", each)
        wrong = [unknown_name(f"{path}.{key}", key, _ENTRY) for key in entry if key not in _ENTRY]
        wrong += [f"{path}.{key}: it is missing" for key, needed in _ENTRY.items() if needed and key not in entry]
        odd = {key: value for key, value in entry.items() if key in _ENTRY and not _is_written(key, value)}
        wrong += [f"{path}.{key}: {value!r} is not allowed; allowed: {_ALLOWED[key]}" for key, value in odd.items()]
        if not wrong and entry["rule"] not in known:
            wrong = [unknown_name(f"{path}.rule", entry["rule"], known)]
        try:
            suppression = read_suppression(entry.get("reason"), entry.get("until"), entry.get("by", ""))
        except ValueError as error:
            wrong = wrong or [f"{path}: {error}"]
        else:
            if not wrong:
                found.append(ConfiguredSuppression(entry["rule"], str(entry["object"]), suppression))
        problems += wrong
    return found


def _is_written(key: str, value: Any) -> bool:
    """Return whether an entry's value has the type of its key. A YAML reader may have turned `until` into a date."""
    return value != "" and isinstance(value, (str, date) if key == "until" else str)


def _truth(written: Any) -> bool:
    if isinstance(written, bool):
        return written
    raise ValueError("true or false")


def _level(written: Any) -> Level:
    if written in list(Level):
        return Level(written)
    raise ValueError(", ".join(Level))


def unknown_name(path: str, name: object, allowed: Iterable[str]) -> str:
    """Return a message that there is no `name`, with the allowed names. `name` comes from a person and may be any YAML value."""
    return f"{path}: there is no {name!r}; {nearest(str(name), sorted(allowed))}"
