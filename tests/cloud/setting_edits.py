"""Edits of a shipped stack's settings: every setting of the schema has edits that change it, so that none is forgotten.

Values come from the schema: the other words of a choice, a neighbour of a number, one entry more or fewer. Values that no schema contains,
such as an ARN or other changes in the same edit, are in setting_edits.yaml.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from program_declarations import STACKS, shipped

from flexspot.capacity.catalog.workload_classes import shipped_classes
from flexspot.capacity.plan.build import build_plan, image_book_of, price_book_of
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.settings.stack_schema import stack_file_schema
from flexspot.capacity.values.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = Path(__file__).with_name("setting_edits.yaml")

ROOTS = {"gke": "GkeSettings", "eks": "EksSettings"}
STACKS_OF = {"gke": ("prod-gke", "dev-gke"), "eks": ("prod-eks", "dev-eks")}
"""Shipped stacks of each cloud. An edit applies to the first one that accepts it."""

Step = str | int
Place = tuple[Step, ...]

GONE = object()
"""Value that removes a setting."""


@dataclass(frozen=True)
class Setting:
    """One leaf of the schema. `path` has `*` for any entry of a list or of settings by name; `schema` describes the allowed values."""

    path: str
    schema: dict[str, Any]


@dataclass(frozen=True)
class Edit:
    """One change of one setting of a stack: its values by place (GONE removes the setting), and its description.

    `base` is written first, where the setting is about something that the shipped stack does not have.
    """

    setting: str
    stack: str
    kind: str
    words: str
    writes: tuple[tuple[Place, Any], ...]
    base: tuple[tuple[Place, Any], ...] = ()

    def before(self) -> dict[str, Any]:
        """Return the stack's settings without the edit."""
        return _with_writes(shipped(self.stack), self.base)

    def applied(self) -> dict[str, Any]:
        """Return the stack's settings with the edit."""
        return _with_writes(self.before(), self.writes)

    def refusal(self) -> str:
        """The objection of `settings check` to the edit, or ""."""
        return refusal_of(self.stack, self.applied())


def _with_writes(settings: dict[str, Any], writes: tuple[tuple[Place, Any], ...]) -> dict[str, Any]:
    for place, value in writes:
        write(settings, place, value)
    return settings


def refusal_of(stack: str, document: dict[str, Any]) -> str:
    """Return the objection of `settings check` to a stack's settings, or ""."""
    try:
        settings = parse_settings(document, stack)
        build_plan(settings, stack, price_book_of(settings, STACKS, stack), image_book_of(settings, STACKS, stack))
    except SettingsError as error:
        return str(error)
    return ""


@cache
def settings_of(cloud: str) -> tuple[Setting, ...]:
    """Return every setting of a cloud, as its schema has them."""
    return tuple(_leaves({"$ref": f"#/$defs/{ROOTS[cloud]}"}, ()))


@cache
def _definitions() -> dict[str, Any]:
    return stack_file_schema()["$defs"]


def _leaves(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[Setting]:
    schema, optional = _plain(schema)
    own = Setting(".".join(path), {**schema, "optional": optional})
    if "properties" in schema:
        if optional:
            yield own
        for name, property_ in schema["properties"].items():
            yield from _leaves(property_, (*path, name))
        return
    yield own
    inner = _inside(schema)
    if inner is not None and "properties" in _plain(inner)[0]:
        yield from _leaves(inner, (*path, "*"))


def _plain(schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return a schema without its references, and whether null is one of its values."""
    if "anyOf" in schema:
        # An amount of money may be a number or a text. The number is edited.
        one = next(each for each in schema["anyOf"] if each.get("type") != "null")
        return _plain(one)[0], True
    if "$ref" in schema:
        said = {key: value for key, value in schema.items() if key == "default"}
        return _definitions()[schema["$ref"].rpartition("/")[2]] | said, False
    return schema, "default" in schema and schema["default"] is None


def _inside(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema of an entry of a list, or of settings by name."""
    if schema.get("type") == "array":
        return schema["items"]
    if schema.get("type") == "object":
        return next(iter(schema.get("patternProperties", {}).values()), None) or schema.get("additionalProperties")
    return None


@cache
def written_edits() -> dict[str, Any]:
    """Return the contents of setting_edits.yaml."""
    return yaml.safe_load(TABLE.read_text(encoding="utf-8"))


@cache
def edits_of(cloud: str, path: str) -> tuple[Edit, ...]:
    """Return the edits of a setting that `settings check` accepts, one of each kind; none where there is a reason (`without_edit`)."""
    written = written_edits()["edits"]
    own = written.get(cloud, {}).get(path) or written["both"].get(path)
    if own is not None:
        return tuple(_written(cloud, path, each) for each in own)
    [setting] = [each for each in settings_of(cloud) if each.path == path]
    return () if path in without_edit(cloud) else tuple(_generated(setting, STACKS_OF[cloud]))


def without_edit(cloud: str) -> dict[str, str]:
    """Return the settings without an edit, with the reason."""
    return written_edits()["none"]["both"] | written_edits()["none"].get(cloud, {})


def _written(cloud: str, path: str, entry: dict[str, Any]) -> Edit:
    stack = entry.get("stack", STACKS_OF[cloud][0])
    settings = shipped(stack)
    base = tuple((place_of(settings, place), value) for place, value in entry.get("base", {}).items())
    settings = _with_writes(settings, base)
    writes = [(place_of(settings, place), value) for place, value in entry.get("write", {}).items()]
    writes += [(place_of(settings, place), GONE) for place in entry.get("take_out", [])]
    for kind, pair in entry.get("rename", {}).items():
        writes += _renamed(settings, kind, *pair)
    for kind, name in entry.get("drop", {}).items():
        writes += _renamed(settings, kind, name, None)
    words = entry.get("words") or ", ".join(f"{place}: {_shown(value)}" for place, value in entry.get("write", {}).items())
    return Edit(path, stack, entry.get("kind", "other"), words, tuple(writes), base)


def place_of(settings: dict[str, Any], written: str) -> Place:
    """Return `pools.l4-spot.zones` as keys and numbers. A name or a number selects an entry of a list."""
    place: list[Step] = []
    value: Any = settings
    for word in written.split("."):
        step: Step = word
        if isinstance(value, list):
            entries: list[Any] = value
            step = int(word) if word.isdecimal() else {each["name"]: i for i, each in enumerate(entries)}[word]
        place.append(step)
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return tuple(place)


def _renamed(settings: dict[str, Any], kind: str, old: str, new: str | None) -> Iterator[tuple[Place, Any]]:
    """Rename a pool, team or cohort everywhere. Without a new name, remove it everywhere."""
    entries = [{**each, "name": new} if each["name"] == old else each for each in settings[kind]]
    yield (kind,), [each for each in entries if each["name"] is not None]
    for owners in ("teams", "cohorts"):
        for number, each in enumerate(settings.get(owners, [])):
            for field in ("shares", "borrowing_limits", "lending_limits", "unqueued"):
                if kind == "pools" and old in each.get(field, {}):
                    renamed = {new if name == old else name: count for name, count in each[field].items()}
                    yield (owners, number, field), {name: count for name, count in renamed.items() if name is not None}
            for field in ("cohort", "parent"):
                if kind == "cohorts" and each.get(field) == old:
                    yield (owners, number, field), GONE if new is None else new


def _generated(setting: Setting, stacks: tuple[str, ...]) -> Iterator[Edit]:
    """Return the first accepted edit of each kind, at the first matching place in the first matching stack."""
    done: set[str] = set()
    for stack in stacks:
        settings = shipped(stack)
        for place in _places(settings, setting.path.split(".")):
            here = _at(settings, place)
            for kind, value in _values(_with_class_default(setting.schema, place), here):
                edit = Edit(setting.path, stack, kind, f"{_named(settings, place)}: {_shown(value)}", ((place, value),))
                if kind not in done and not edit.refusal():
                    done.add(kind)
                    yield edit


def _with_class_default(schema: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return the schema of a workload class's field with its default from the shipped class, which no schema has."""
    if place[0] != "classes" or len(place) < len(("classes", "training", "queued")):
        return schema
    value: Any = shipped_classes()[str(place[1])].model_dump(mode="json")
    for step in place[2:]:
        value = value[step]
    return {**schema, "default": value}


def _places(settings: Any, path: list[str]) -> Iterator[Place]:
    """Yield the places where a setting is or could be. Settings that are absent have none, unless they have defaults."""
    if not path:
        yield ()
        return
    step, rest = path[0], path[1:]
    if step == "*":
        entries: list[Step] = list(range(len(settings))) if isinstance(settings, list) else list(settings or ())
        for each in entries:
            yield from ((each, *place) for place in _places(settings[each], rest))
        return
    below: dict[str, Any] = settings if isinstance(settings, dict) else {}
    yield from ((step, *place) for place in _places(below.get(step), rest))


def _at(settings: Any, place: Place) -> Any:
    value: Any = settings
    for step in place:
        if value is GONE or (isinstance(value, dict) and step not in value):
            return GONE
        value = value[step]
    return value


def _values(schema: dict[str, Any], here: Any) -> Iterator[tuple[str, Any]]:
    """Yield other values of a setting, each with the kind of edit that it makes."""
    if here is not GONE and schema.get("optional"):
        yield "unset", GONE
    default = schema.get("default")
    now = default if here is GONE else here
    match schema.get("type"):
        case "boolean":
            yield from (("other", value) for value in (True, False) if value != now)
        case "integer":
            yield from (("other", value) for value in _numbers(schema, now))
        case "string" if "enum" in schema:
            yield from (("other", value) for value in schema["enum"] if value != now)
        case "string":
            yield from (("other", value) for value in ([f"{now}-two"] if isinstance(now, str) else ["another"]))
        case "array":
            yield from _lists(schema, [] if now is None else now)
        case "object":
            entries: dict[str, Any] = {} if here is GONE else here
            for key, value in entries.items():
                yield "fewer", {name: each for name, each in entries.items() if name != key}
                if isinstance(value, int):
                    yield from (("other", {**entries, key: other}) for other in (value - 1, value + 1) if other >= 0)
        case _:
            return


def _numbers(schema: dict[str, Any], now: Any) -> Iterator[int]:
    least, most = schema.get("minimum", 0), schema.get("maximum", 1_000_000)
    near = [now + 1, now - 1, now * 2, now // 2] if isinstance(now, int) else []
    choices = schema.get("enum") or [*near, least, most, *(10**digits for digits in range(7))]
    yield from dict.fromkeys(each for each in choices if least <= each <= most and each != now)


def _lists(schema: dict[str, Any], now: list[Any]) -> Iterator[tuple[str, Any]]:
    for number in reversed(range(len(now))):
        yield "fewer", [*now[:number], *now[number + 1 :]]
    for choice in _plain(schema["items"])[0].get("enum", []):
        if choice not in now:
            yield "more", [*now, choice]


def write(settings: Any, place: Place, value: Any) -> None:
    """Write a value at its place, or remove it. Raises KeyError, IndexError or TypeError if the place does not exist."""
    *holders, last = place
    for step in holders:
        if isinstance(settings, dict) and settings.get(step) is None:
            settings[step] = {}
        settings = settings[step]
    if value is GONE:
        settings.pop(last)
    elif isinstance(settings, list) and last == len(settings):
        settings.append(copy.deepcopy(value))
    else:
        settings[last] = copy.deepcopy(value)


def _named(settings: Any, place: Place) -> str:
    words: list[str] = []
    for step in place:
        settings = _at(settings, (step,)) if settings is not GONE else GONE
        entry: dict[str, Any] = settings if isinstance(step, int) and isinstance(settings, dict) else {}
        words.append(str(entry.get("name", step)))
    return ".".join(words)


def _shown(value: Any) -> str:
    if value is GONE:
        return "taken out"
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("...\n").strip()
    return text if len(text) <= 70 else f"{text[:67]}..."
