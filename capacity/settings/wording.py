"""Pydantic's errors in the words of a stack file."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin

import yaml
from pydantic import BaseModel

from capacity.values.errors import SettingsProblem, nearest
from capacity.values.names import FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

    from capacity.catalog.platform import Platform

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
        field = _model_at(models[platform], location[:-1]).model_fields[str(location[-1])]
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
    known = sorted(_model_at(models[platform], location[:-1]).model_fields)
    elsewhere = [other for other, model in models.items() if other != platform and name in _model_at(model, location[:-1]).model_fields]
    if elsewhere:
        return SettingsProblem(path, "", f"is a setting of cloud {' and '.join(elsewhere)}, not of {platform}", nearest("", known))
    return SettingsProblem(path, "", "is not a setting", nearest(name, known))


def _model_at(model: type[BaseModel], location: Location) -> type[BaseModel]:
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
    patterns = [str(getattr(each, "pattern", "")) for each in field.metadata]
    return next((FORMS[pattern] for pattern in patterns if pattern in FORMS), "")


def _wanted(annotation: Any) -> str:
    """What a field takes, in words."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"one of {', '.join(str(each.value) for each in annotation)}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "settings by name"
    words: dict[Any, str] = {str: "text", int: "a whole number", bool: "true or false", tuple: "a list", dict: "settings by name"}
    return words.get(annotation) or words.get(get_origin(annotation), "required")
