"""Reading a stack file's settings, and saying everything that is wrong with them at once, each with its line and in the file's words."""

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

_LONGEST = 60
"""About half a line."""

_WORDS = (
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
"""How Python writes a member of an enum, and so does pydantic where a field takes some of them."""


def problem_of(models: Mapping[Platform, type[BaseModel]], platform: Platform, error: Any, value: object) -> SettingsProblem:
    """One error of `value` against the model of `platform`; the other platforms' models tell what is a setting there."""
    is_key = bool(error["loc"]) and error["loc"][-1] == "[key]"
    location: Location = tuple(step for step in error["loc"] if step != "[key]")
    path = ".".join(map(str, location)) or "(all)"
    written = str(location[-1]) if is_key else reached(value, location)
    kind: str = error["type"]
    if kind == "extra_forbidden":
        return _not_a_setting(models, platform, location)
    if kind == "missing":
        field = model_at(models[platform], location[:-1]).model_fields[str(location[-1])]
        return SettingsProblem(path, "", "is missing", f"it is {_form(field) or _wanted(field.annotation)}")
    # Of settings by name their own name says most; where something else belongs, it would mislead.
    misleads = isinstance(written, dict) and not kind.startswith("value_error")
    told = "" if misleads else shown(cast("object", written))
    return SettingsProblem(path, told, *said(error))


def said(error: Any) -> tuple[str, str]:
    """What is wrong, and what is allowed instead."""
    kind = error["type"]
    if kind == "enum":
        written = str(error["input"])
        return "is not one of the allowed values", nearest(written, _expected(error))
    # Some of an enum's members alone are allowed.
    if kind == "literal_error" and (members := _MEMBER.findall(error["ctx"]["expected"])):
        return "is not one of the allowed values", nearest(str(error["input"]), members)
    if kind == "string_pattern_mismatch":
        words = FORMS[error["ctx"]["pattern"]]
        return ("is not a valid name" if "40 at most" in words else "does not have the form that it must"), f"allowed: {words}"
    text = str(error["msg"])
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    if kind == "string_type" and isinstance(error["input"], (int, float)):
        return text, "put it in quotes"
    problem, _, allowed = text.partition("; ")
    return problem, allowed


def shown(written: object) -> str:
    """What was written, as YAML has it and short enough for a message; of settings by name their own name."""
    if isinstance(written, dict):
        name = reached(written, ("name",))
        return repr(name) if isinstance(name, str) else ""
    if isinstance(written, str):
        text = repr(written)
    else:
        try:
            text = yaml.safe_dump(written, default_flow_style=True, width=10_000).removesuffix("\n...\n").strip()
        except (yaml.YAMLError, RecursionError, ValueError):
            text = type(written).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def reached(value: Any, location: Location) -> Any:
    """What stands at `location`; None where nothing does."""
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
    """The model of what stands at `location` in the settings, or of the nearest thing around it."""
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
    # Pydantic's own list, `'spot', 'on-demand' or 'reserved'`: it knows which enum stood there.
    return [word.strip(" '") for word in error["ctx"]["expected"].replace(" or ", ",").split(",")]


def _form(field: FieldInfo) -> str:
    """What a field with a form of its own takes, in the words for that form; empty where it has none."""
    # Of a field that may be nothing, the form is inside of its annotation.
    either = get_args(field.annotation)
    optional = either if type(None) in either else ()
    inside = [each for argument in optional for info in getattr(argument, "__metadata__", ()) for each in info.metadata]
    patterns = [str(getattr(each, "pattern", "")) for each in (*field.metadata, *inside)]
    return next((FORMS[pattern] for pattern in patterns if pattern in FORMS), "")


def _wanted(annotation: Any) -> str:
    """What a field takes, in words."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"one of {', '.join(str(each.value) for each in annotation)}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "settings by name"
    words: dict[Any, str] = {str: "text", int: "a whole number", bool: "true or false", tuple: "a list", dict: "settings by name"}
    return words.get(annotation) or words.get(get_origin(annotation), "required")


SETTINGS_KEY = "flexspot:platform"
"""The key under `config` that holds the settings."""

NodePath = tuple[str, ...]

_DEEPEST = 12
"""Deeper than any setting stands; an alias that holds itself would go on for ever."""


def lines_of(text: str) -> Callable[[str], int | None]:
    """Finds the line (from 1) on which the setting of a path stands, or the nearest thing around it that does."""
    above = len(("config", SETTINGS_KEY))
    # Of a key that stands twice the last counts, as it does for YAML.
    found = {path[above:]: line for path, line in _lines(text) if path[:above] == ("config", SETTINGS_KEY)}

    def line_of(path: str) -> int | None:
        steps = tuple(path.split("."))
        while steps and steps not in found:
            steps = steps[:-1]
        return found.get(steps)

    return line_of


def keys_that_stand_twice(text: str) -> list[SettingsProblem]:
    """Keys down to the settings' own of which YAML would take the last and drop the rest without a word."""
    first: dict[NodePath, int] = {}
    problems: list[SettingsProblem] = []
    repeated: list[NodePath] = []
    for path, line in _lines(text):
        if any(path[: len(each)] == each and path != each for each in repeated):
            # What stands below a repeated key is repeated with it.
            continue
        if path in first:
            told = ".".join(path[2:] or path)
            problem = f"stands twice, first on line {first[path]}"
            problems.append(SettingsProblem(told, "", problem, "leave one of them out", "duplicate-name", line=line))
            repeated.append(path)
        first.setdefault(path, line)
    return problems


def _lines(text: str) -> list[tuple[NodePath, int]]:
    """The path and line of every key and list item that is `config`, below it our key, or below that."""
    found: list[tuple[NodePath, int]] = []
    for path, node in _nodes(yaml.compose(text, Loader=yaml.CSafeLoader), (), set()):
        if path[:1] == ("config",) and (len(path) == 1 or path[1] == SETTINGS_KEY):
            found.append((path, node.start_mark.line + 1))
    return found


def _nodes(node: Any, path: NodePath, seen: set[int]) -> Iterator[tuple[NodePath, Any]]:
    """Every key and list item below a node. What an alias names is gone through once: it may hold itself, or itself many times.

    The settings are two keys deep in the file.
    """
    if id(node) in seen or len(path) > _DEEPEST + 2:
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


_TOLD = 50
"""As many problems of this kind as anybody reads; aliases upon aliases would make millions of them."""

_MOST_VALUES = 100_000
"""More values than any platform's settings hold; ten lines of aliases upon aliases hold billions, which nobody could go through."""

_KINDS = {"date": "a date", "datetime": "a date", "bytes": "binary data", "set": "a set"}


def read_stack_file(path: Path) -> PlatformSettings:
    """The settings of a stack file. Raises SettingsError with every problem and its line, or FileNotFoundError."""
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
        problem = SettingsProblem("(whole file)", "", f"holds what cannot be read: {error}", "put dates and long numbers in quotes")
        raise SettingsError(path.name, [problem]) from error
    value = reached(content, ("config", SETTINGS_KEY))
    if value is None:
        problem = SettingsProblem(f"config.{SETTINGS_KEY}", "", "is missing", "every stack file has its settings under this key")
        raise SettingsError(path.name, [problem])
    if twice := keys_that_stand_twice(text):
        raise SettingsError(path.name, twice)
    try:
        return parse_settings(value, path.name)
    except SettingsError as error:
        raise error.with_lines(lines_of(text)) from error


def parse_settings(value: object, source: str) -> PlatformSettings:
    """Settings from plain data, such as a stack's configuration value. Raises SettingsError naming `source`."""
    if unsayable := list(dict.fromkeys(islice(_unsayable(value, "", iter(range(_MOST_VALUES))), _TOLD))):
        raise SettingsError(source, unsayable)
    platform = _platform_of(value, source)
    try:
        # Through JSON, in which YAML's lists are the tuples that the models hold, and still no text is taken for a number.
        return MODELS[platform].model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        # A list whose items are all wrong is also called too short; the items' own problems say enough.
        errors = [each for each in error.errors() if not (each["type"] == "too_short" and reached(value, each["loc"]))]
        raise SettingsError(source, [problem_of(MODELS, platform, each, value) for each in errors]) from error


def _not_yaml(error: yaml.YAMLError) -> SettingsProblem:
    mark = getattr(error, "problem_mark", None)
    line: int | None = mark.line + 1 if mark is not None else None
    return SettingsProblem("(whole file)", "", f"is not YAML: {getattr(error, 'problem', None) or error}", "", line=line)


def _platform_of(value: object, source: str) -> Platform:
    """Checks `cloud`; every other setting depends on it, so its problem is reported first and alone."""
    if not isinstance(value, dict):
        raise SettingsError(source, [SettingsProblem("(all)", shown(value), "should be settings by name, such as cloud: local", "")])
    written = reached(value, ("cloud",))
    if written is None:
        raise SettingsError(source, [SettingsProblem("cloud", "", "is missing", nearest("", Platform))])
    if not isinstance(written, str) or written not in set(Platform):
        problem = SettingsProblem("cloud", shown(written), "is not one of the allowed values", nearest(str(written), Platform))
        raise SettingsError(source, [problem])
    return Platform(written)


def _unsayable(value: object, path: str, left: Iterator[int], around: tuple[int, ...] = ()) -> Iterator[SettingsProblem]:
    """Values that YAML can hold and settings cannot: dates, binary, numbers without end, aliases that hold themselves or repeat too much.

    `left` gives one number for each value that may still be looked at.
    """
    below = (*around, id(value))
    if next(left, None) is None:
        yield SettingsProblem(
            path.partition(".")[0], "", f"holds over {_MOST_VALUES:,} values with what is before it", "leave the aliases out"
        )
        return
    if below[-1] in around or len(around) > _DEEPEST:
        yield SettingsProblem(path.partition(".")[0], "", "goes deeper than any setting", "leave the alias out")
    elif isinstance(value, dict):
        for key, each in cast("dict[object, object]", value).items():
            inside = f"{path}.{key}" if path else str(key) or "''"
            if not isinstance(key, str) or not key:
                yield SettingsProblem(inside, "", "is not a name", "put it in quotes, or leave it out")
            yield from _unsayable(each, inside, left, below)
    elif isinstance(value, list):
        for number, each in enumerate(cast("list[object]", value)):
            yield from _unsayable(each, f"{path}.{number}" if path else str(number), left, below)
    elif (problem := _unsayable_scalar(value)) is not None:
        yield SettingsProblem(path or "(all)", *problem)


def _unsayable_scalar(value: object) -> tuple[str, str, str] | None:
    """What was written, what is wrong with it and what is allowed; None when nothing is."""
    if isinstance(value, float) and not math.isfinite(value):
        return shown(value), "is not a number that can be meant", ""
    if isinstance(value, int) and abs(value) > 2**63:
        return "", "is larger than any setting can be", ""
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        return "", "holds half of a character", "write it as UTF-8 has it"
    if value is None or isinstance(value, (str, int, float)):
        return None
    return shown(value), f"is read as {_KINDS.get(type(value).__name__, 'something else')}", "put it in quotes to make it text"
