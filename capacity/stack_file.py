"""Reading a stack file's settings, and saying everything that is wrong with them at once."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from capacity.settings import PlatformSettings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SETTINGS_KEY = "flexspot:platform"


@dataclass(frozen=True)
class SettingsProblem:
    """One thing that is wrong: where (a path such as `pools.0.machine`), what was written, what is wrong, what is allowed."""

    path: str
    value: str
    problem: str
    allowed: str

    def __str__(self) -> str:
        written = f" (is {self.value})" if self.value else ""
        return f"{self.path}{written}: {self.problem}{f'; {self.allowed}' if self.allowed else ''}"


class SettingsError(ValueError):
    """Settings that cannot be used. `problems` holds all of them; the text is one line each."""

    def __init__(self, source: str, problems: Iterable[SettingsProblem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(
            "\n".join([f"{source}: {len(self.problems)} problem(s) in the settings", *(f"  {each}" for each in self.problems)])
        )


def read_stack_file(path: Path) -> PlatformSettings:
    """The settings of a stack file. Raises SettingsError with every problem, or FileNotFoundError."""
    try:
        content: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise SettingsError(path.name, [SettingsProblem("(whole file)", "", f"is not YAML: {error}", "")]) from error
    value = _at(content, ("config", SETTINGS_KEY))
    if value is None:
        problem = SettingsProblem(f"config.{SETTINGS_KEY}", "", "is missing", "every stack file has its settings under this key")
        raise SettingsError(path.name, [problem])
    return parse_settings(value, path.name)


def parse_settings(value: object, source: str) -> PlatformSettings:
    """Settings from plain data, such as a stack's configuration value. Raises SettingsError naming `source`."""
    try:
        # Through JSON, in which YAML's lists are the tuples that the models hold, and still no text is taken for a number.
        return PlatformSettings.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        # A list whose items are all wrong is also called too short; the items' own problems say enough.
        errors = [each for each in error.errors() if not (each["type"] == "too_short" and _at(value, each["loc"]))]
        raise SettingsError(source, [_problem(each, value) for each in errors]) from error
    except TypeError as error:
        raise SettingsError(source, [SettingsProblem("(all)", "", f"holds what a stack file cannot say: {error}", "")]) from error


def _problem(error: Any, value: object) -> SettingsProblem:
    location: tuple[int | str, ...] = error["loc"]
    path = ".".join(map(str, location)) or "(all)"
    kind = error["type"]
    written = _at(value, location)
    if kind == "extra_forbidden":
        known = sorted(_fields_at(location[:-1]))
        return SettingsProblem(path, "", "is not a setting", nearest(str(location[-1]), known))
    if kind == "missing":
        return SettingsProblem(path, "", "is missing", "")
    if kind == "enum":
        return SettingsProblem(path, repr(written), "is not one of the allowed values", nearest(str(written), _enum_values(location)))
    if kind == "string_pattern_mismatch":
        allowed = "allowed are lower-case letters, digits and inner hyphens, beginning with a letter, 40 at most"
        return SettingsProblem(path, repr(written), "is not a valid name", allowed)
    message = str(error["msg"]).removeprefix("Input ").removeprefix("Value error, ")
    return SettingsProblem(path, repr(written), message.replace("Tuple should", "should").partition(" after validation")[0], "")


def _at(value: Any, location: tuple[int | str, ...]) -> Any:
    for step in location:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _fields_at(location: tuple[int | str, ...]) -> set[str]:
    return set(_model_at(location).model_fields)


def _model_at(location: tuple[int | str, ...]) -> type[BaseModel]:
    model: type[BaseModel] = PlatformSettings
    for step in location:
        if isinstance(step, str):
            model = next(_models_in(model.model_fields[step].annotation), model)
    return model


def _models_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _enum_values(location: tuple[int | str, ...]) -> list[str]:
    annotation = _model_at(location[:-1]).model_fields[str(location[-1])].annotation
    return [str(each.value) for each in annotation] if isinstance(annotation, type) and issubclass(annotation, Enum) else []


def nearest(written: str, known: Iterable[str]) -> str:
    """What may be written instead: the closest first, if one is close, then all."""
    names = list(known)
    close = difflib.get_close_matches(written, names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}allowed: {', '.join(names) or '(none)'}"
