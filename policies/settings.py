"""What a user of the rules sets: a level and parameters for each rule, read strictly."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast

from policies.rule import Level, Parameters
from policies.unknown import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policies.rule import Setting
    from policies.rules import AnyRule

_LEVEL = "level"


@dataclass(frozen=True)
class Settings:
    """Levels and parameters by rule name; what is not set is as the rule has it. `problems` are for the person who wrote the settings."""

    levels: Mapping[str, Level] = field(default_factory=dict[str, Level])
    values: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict[str, "Mapping[str, Setting]"])
    problems: tuple[str, ...] = ()

    def level(self, rule: AnyRule) -> Level:
        """The level that counts for `rule`."""
        return self.levels.get(rule.name, rule.level)

    def parameters(self, rule: AnyRule) -> Parameters:
        """The parameters of `rule`, the unset ones with their defaults."""
        return Parameters({**rule.defaults().settings, **self.values.get(rule.name, {})})


DEFAULTS = Settings()


def schema(rules: Iterable[AnyRule]) -> dict[str, dict[str, Any]]:
    """The JSON schema of the settings: for each rule a level, or a level and parameters."""
    levels = {"type": "string", "enum": [level.value for level in Level]}
    return {
        rule.name: {
            "description": f"{rule.why} Default level: {rule.level}.",
            "oneOf": [
                levels,
                {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {_LEVEL: levels, **{each.name: each.schema() for each in rule.parameters}},
                },
            ],
        }
        for rule in rules
    }


def read_settings(written: Mapping[str, Any], rules: Iterable[AnyRule]) -> Settings:
    """The settings that `{rule: level}` and `{rule: {level: ..., parameter: ...}}` spell.

    Never raises: what is wrong is left at its default and told of in `problems`, all of it at once.
    """
    known = {rule.name: rule for rule in rules}
    levels: dict[str, Level] = {}
    values: dict[str, dict[str, Setting]] = {}
    problems: list[str] = []
    for name, setting in cast("dict[str, Any]", plain(dict(written))).items():
        if name not in known:
            problems.append(_unknown_name(name, name, known))
            continue
        entries = cast("dict[str, Any]", setting) if isinstance(setting, dict) else {_LEVEL: setting}
        parameters = {parameter.name: parameter for parameter in known[name].parameters}
        for key, value in entries.items():
            try:
                if key == _LEVEL:
                    levels[name] = _level(value)
                elif key in parameters:
                    values.setdefault(name, {})[key] = parameters[key].read(value)
                else:
                    problems.append(_unknown_name(f"{name}.{key}", key, [_LEVEL, *parameters]))
            except ValueError as error:
                problems.append(f"{name}.{key}: {value!r} is not allowed; allowed is {error}")
    return Settings(levels, values, tuple(problems))


def _level(written: Any) -> Level:
    if written in list(Level):
        return Level(written)
    raise ValueError(f"one of {', '.join(Level)}")


def _unknown_name(path: str, name: str, allowed: Iterable[str]) -> str:
    names = sorted(allowed)
    nearest = get_close_matches(name, names, n=1)
    return f"{path}: there is no {name!r}; " + (f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(names)}")
