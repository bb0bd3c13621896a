"""Read the settings of a stack file. All problems are reported at once, each with its line and its path in the file."""

from __future__ import annotations

import json
import math
import re
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.settings.platform import MODELS, PlatformSettings
from flexspot.capacity.values.errors import SettingsError, SettingsProblem, nearest
from flexspot.capacity.values.names import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pydantic.fields import FieldInfo


Location = tuple[int | str, ...]

_MOST_CHARACTERS = 60
"""Most characters of a value in a message: about half a line."""

_REPLACED_WORDS = (
    (r"^Value error, ", ""),
    (r"^(Input|String|Tuple|List|Dictionary|Value|Set|Object) should ", "should "),
    (r"a valid (array|tuple|list)$", "a list"),
    (r"(a valid dictionary|an object)( or instance of \w+)?$", "settings by name"),
    (r"a valid string$", "text"),
    (r"a valid integer$", "a whole number"),
    (r"a valid boolean$", "true or false"),
    (r"a valid decimal$", "a number"),
    (r"greater than or equal to ", "at least "),
    (r"less than or equal to ", "at most "),
    (r"( items?) after validation, not \d+$", r"\1"),
)

_MEMBER = re.compile(r"<\w+\.\w+: '([^']*)'>")
"""The representation of an enum's member, which pydantic uses in errors about a subset of members."""


def problem_of(models: Mapping[Platform, type[BaseModel]], platform: Platform, error: Any, value: object) -> SettingsProblem:
    """Return the problem for one error of `value` against the model of `platform`.

    The other models show if a setting belongs to another platform.
    """
    is_key = bool(error["loc"]) and error["loc"][-1] == "[key]"
    location: Location = tuple(step for step in error["loc"] if step != "[key]")
    path = ".".join(map(str, location)) or "(all)"
    written = str(location[-1]) if is_key else value_at(value, location)
    kind: str = error["type"]
    if kind == "extra_forbidden":
        return _not_a_setting(models, platform, location)
    if kind == "missing":
        field = model_at(models[platform], location[:-1]).model_fields[str(location[-1])]
        return SettingsProblem(path, "", "is missing", f"set it to {_form(field) or _accepted(field.annotation)}")
    # A mapping is shown by its name. Where another type is expected, the name would mislead.
    misleads = isinstance(written, dict) and not kind.startswith("value_error")
    value_text = "" if misleads else shown(cast("object", written))
    return SettingsProblem(path, value_text, *problem_and_remedy(error))


def problem_and_remedy(error: Any) -> tuple[str, str]:
    """Return the problem and the allowed values or remedy for an error of pydantic."""
    kind = error["type"]
    if kind == "enum":
        written = str(error["input"])
        return "is not one of the allowed values", nearest(written, _expected(error))
    # The field allows only some members of an enum.
    if kind == "literal_error" and (members := _MEMBER.findall(error["ctx"]["expected"])):
        return "is not one of the allowed values", nearest(str(error["input"]), members)
    if kind == "string_pattern_mismatch":
        words = FORMS[error["ctx"]["pattern"]]
        return ("is not a valid name" if "40 at most" in words else "does not have the required form"), f"allowed: {words}"
    text = str(error["msg"])
    for pattern, words in _REPLACED_WORDS:
        text = re.sub(pattern, words, text)
    if kind == "string_type" and isinstance(error["input"], (int, float)):
        return text, "put it in quotes"
    problem, _, allowed = text.partition("; ")
    return problem, allowed


def shown(written: object) -> str:
    """Return a value in YAML, short enough for a message. A mapping is shown by the value of its key `name`, if it has one."""
    if isinstance(written, dict):
        name = value_at(written, ("name",))
        return repr(name) if isinstance(name, str) else ""
    if isinstance(written, str):
        text = repr(written)
    else:
        try:
            text = yaml.safe_dump(written, default_flow_style=True, width=10_000).removesuffix("\n...\n").strip()
        except (yaml.YAMLError, RecursionError, ValueError):
            text = type(written).__name__
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."


def value_at(value: Any, location: Location) -> Any:
    """Return the value at `location`, or None without one."""
    for step in location:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _not_a_setting(models: Mapping[Platform, type[BaseModel]], platform: Platform, location: Location) -> SettingsProblem:
    path, name = ".".join(map(str, location)), str(location[-1])
    known = sorted(model_at(models[platform], location[:-1]).model_fields)
    elsewhere = [other for other, model in models.items() if other != platform and name in model_at(model, location[:-1]).model_fields]
    if elsewhere:
        return SettingsProblem(path, "", f"is a setting of cloud {' and '.join(elsewhere)}, not of {platform}", nearest("", known))
    return SettingsProblem(path, "", "is not a setting", nearest(name, known))


def model_at(model: type[BaseModel], location: Location) -> type[BaseModel]:
    """Return the model of the settings at `location`, or of the nearest settings around it."""
    for step in location:
        if isinstance(step, str) and step in model.model_fields:
            model = next(_models_in(model.model_fields[step].annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _expected(error: Any) -> list[str]:
    # Pydantic lists the enum's values: `'spot', 'on-demand' or 'reserved'`.
    return [word.strip(" '") for word in error["ctx"]["expected"].replace(" or ", ",").split(",")]


def _form(field: FieldInfo) -> str:
    """Return the description of the form that a field requires, or an empty string if it has none."""
    # The form of an optional field is inside its annotation.
    either = get_args(field.annotation)
    optional = either if type(None) in either else ()
    inside = [each for argument in optional for info in getattr(argument, "__metadata__", ()) for each in info.metadata]
    patterns = [str(getattr(each, "pattern", "")) for each in (*field.metadata, *inside)]
    return next((FORMS[pattern] for pattern in patterns if pattern in FORMS), "")


def _accepted(annotation: Any) -> str:
    """Describe the values that a field accepts."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"one of {', '.join(str(each.value) for each in annotation)}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "settings by name"
    words: dict[Any, str] = {str: "text", int: "a whole number", bool: "true or false", tuple: "a list", dict: "settings by name"}
    return words.get(annotation) or words.get(get_origin(annotation), "required")


SETTINGS_KEY = "flexspot:platform"
"""Key under `config` that contains the settings."""

NodePath = tuple[str, ...]

_MOST_LEVELS = 12
"""Most levels below the settings. No setting is deeper, and an alias that contains itself would have no end."""


def lines_of(text: str) -> Callable[[str], int | None]:
    """Return a function that finds the line (from 1) of the setting at a path, or of the nearest setting around it."""
    above = len(("config", SETTINGS_KEY))
    # The last of a repeated key wins, as in YAML.
    found = {path[above:]: line for path, line in _lines(text) if path[:above] == ("config", SETTINGS_KEY)}

    def line_of(path: str) -> int | None:
        steps = tuple(path.split("."))
        while steps and steps not in found:
            steps = steps[:-1]
        return found.get(steps)

    return line_of


def duplicate_keys(text: str) -> list[SettingsProblem]:
    """Return a problem for each repeated key. YAML would silently use the last one."""
    first: dict[NodePath, int] = {}
    problems: list[SettingsProblem] = []
    repeated: list[NodePath] = []
    for path, line in _lines(text):
        if any(path[: len(each)] == each and path != each for each in repeated):
            # Keys below a repeated key are not reported again.
            continue
        if path in first:
            key = ".".join(path[2:] or path)
            problem = f"is set twice, first on line {first[path]}"
            problems.append(SettingsProblem(key, "", problem, "leave one of them out", "duplicate-name", line=line))
            repeated.append(path)
        first.setdefault(path, line)
    return problems


def _lines(text: str) -> list[tuple[NodePath, int]]:
    """Return the path and line of every key and list item that is `config`, the key of the settings in it, or below that."""
    found: list[tuple[NodePath, int]] = []
    for path, node in _nodes(yaml.compose(text, Loader=yaml.CSafeLoader), (), set()):
        if path[:1] == ("config",) and (len(path) == 1 or path[1] == SETTINGS_KEY):
            found.append((path, node.start_mark.line + 1))
    return found


def _nodes(node: Any, path: NodePath, seen: set[int]) -> Iterator[tuple[NodePath, Any]]:
    """Yield every key and list item below a node. Each aliased node is visited once, because it may contain itself, or itself many times.

    The settings are two keys deep in the file.
    """
    if id(node) in seen or len(path) > _MOST_LEVELS + 2:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            yield (*path, str(name.value)), name
            yield from _nodes(value, (*path, str(name.value)), seen)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*path, str(number)), value
            yield from _nodes(value, (*path, str(number)), seen)


_MOST_PROBLEMS = 50
"""Most problems of this kind that are reported. Nested aliases could cause millions of them."""

_MOST_VALUES = 100_000
"""Most values in the settings. Ten lines of nested aliases can contain billions of values, too many to check."""

_KINDS = {"date": "a date", "datetime": "a date", "bytes": "binary data", "set": "a set"}


def read_stack_file(path: Path) -> PlatformSettings:
    """Return the settings of a stack file. Raises SettingsError with every problem and its line, or FileNotFoundError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(path.name, [SettingsProblem("(whole file)", "", "is not text in UTF-8", "save it as UTF-8")]) from error
    try:
        content: Any = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise SettingsError(path.name, [_not_yaml(error)]) from error
    except (ValueError, RecursionError) as error:
        # A date such as 2026-13-45, or lists nested a thousand deep.
        problem = SettingsProblem("(whole file)", "", f"contains an unreadable value: {error}", "put dates and long numbers in quotes")
        raise SettingsError(path.name, [problem]) from error
    value = value_at(content, ("config", SETTINGS_KEY))
    if value is None:
        problem = SettingsProblem(f"config.{SETTINGS_KEY}", "", "is missing", "every stack file has its settings under this key")
        raise SettingsError(path.name, [problem])
    if twice := duplicate_keys(text):
        raise SettingsError(path.name, twice)
    try:
        return parse_settings(value, path.name)
    except SettingsError as error:
        raise error.with_lines(lines_of(text)) from error


def parse_settings(value: object, source: str) -> PlatformSettings:
    """Return settings from plain data, such as a stack's configuration value. Raises SettingsError naming `source`."""
    if unsupported := list(dict.fromkeys(islice(_unsupported(value, "", iter(range(_MOST_VALUES))), _MOST_PROBLEMS))):
        raise SettingsError(source, unsupported)
    platform = _platform_of(value, source)
    try:
        # JSON in strict mode turns lists into the models' tuples and still accepts no text as a number.
        return MODELS[platform].model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        # Pydantic also reports a list of invalid items as too short. The items' own problems suffice.
        errors = [each for each in error.errors() if not (each["type"] == "too_short" and value_at(value, each["loc"]))]
        raise SettingsError(source, [problem_of(MODELS, platform, each, value) for each in errors]) from error


def _not_yaml(error: yaml.YAMLError) -> SettingsProblem:
    mark = getattr(error, "problem_mark", None)
    line: int | None = mark.line + 1 if mark is not None else None
    return SettingsProblem("(whole file)", "", f"is not YAML: {getattr(error, 'problem', None) or error}", "", line=line)


def _platform_of(value: object, source: str) -> Platform:
    """Return the value of `cloud`. Every other setting depends on it, so a problem with it is reported first and alone."""
    if not isinstance(value, dict):
        raise SettingsError(source, [SettingsProblem("(all)", shown(value), "must be a mapping of settings, such as cloud: local", "")])
    written = value_at(value, ("cloud",))
    if written is None:
        raise SettingsError(source, [SettingsProblem("cloud", "", "is missing", nearest("", Platform))])
    if not isinstance(written, str) or written not in set(Platform):
        problem = SettingsProblem("cloud", shown(written), "is not one of the allowed values", nearest(str(written), Platform))
        raise SettingsError(source, [problem])
    return Platform(written)


def _unsupported(value: object, path: str, left: Iterator[int], around: tuple[int, ...] = ()) -> Iterator[SettingsProblem]:
    """Yield a problem for each value that YAML supports and settings do not.

    These are dates, binary data, infinite numbers, and aliases that contain themselves or repeat too much. `left` yields one number for
    each value that may still be checked.
    """
    below = (*around, id(value))
    if next(left, None) is None:
        yield SettingsProblem(
            path.partition(".")[0], "", f"brings the settings to over {_MOST_VALUES:,} values", "replace its YAML aliases"
        )
        return
    if below[-1] in around or len(around) > _MOST_LEVELS:
        yield SettingsProblem(path.partition(".")[0], "", "is nested deeper than any setting", "leave the alias out")
    elif isinstance(value, dict):
        for key, each in cast("dict[object, object]", value).items():
            inside = f"{path}.{key}" if path else str(key) or "''"
            if not isinstance(key, str) or not key:
                yield SettingsProblem(inside, "", "is not a name", "put it in quotes, or leave it out")
            yield from _unsupported(each, inside, left, below)
    elif isinstance(value, list):
        for number, each in enumerate(cast("list[object]", value)):
            yield from _unsupported(each, f"{path}.{number}" if path else str(number), left, below)
    elif (problem := _unsupported_scalar(value)) is not None:
        yield SettingsProblem(path or "(all)", *problem)


def _unsupported_scalar(value: object) -> tuple[str, str, str] | None:
    """Return the value, its problem and the remedy, or None if the value is supported."""
    if isinstance(value, float) and not math.isfinite(value):
        return shown(value), "is not a finite number", ""
    if isinstance(value, int) and abs(value) > 2**63:
        return "", "is larger than any setting can be", ""
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        return "", "contains an incomplete character", "write it as UTF-8 has it"
    if value is None or isinstance(value, (str, int, float)):
        return None
    return shown(value), f"is read as {_KINDS.get(type(value).__name__, 'something else')}", "put it in quotes to make it text"
