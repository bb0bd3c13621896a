"""Arguments that several components take, and how arguments are checked and refused."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from inspect import get_annotations
from ipaddress import IPv4Network
from types import NoneType, UnionType
from typing import Any, NoReturn, NotRequired, TypedDict, TypeVar, Union, cast, get_args, get_origin, is_typeddict

import pulumi
from pydantic import ValidationError

from flexspot.capacity.catalog.data_files import DescribedRecord, Record
from flexspot.capacity.settings.stack_file import problem_and_remedy, shown
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import IAM_PATH, IAM_POLICY
from flexspot.components.cloud_names import check_form

OptionsT = TypeVar("OptionsT", bound=DescribedRecord)
ArgsT = TypeVar("ArgsT")


def arguments(kind: type[ArgsT], *sources: object, **own: object) -> ArgsT:
    """Return a component's arguments. Each is taken from `own`, or else from the first source that has a field of its name.

    Sources are records of the plan or the settings, or maps. A field that is None is omitted where the argument does not accept None.
    Raises TypeError for a required argument that is in none of them, and for one in `own` that the component does not have.
    """
    hints = {name: get_args(hint)[0] if get_origin(hint) is NotRequired else hint for name, hint in kind.__annotations__.items()}
    if unknown := own.keys() - hints.keys():
        raise TypeError(f"{kind.__name__} has no argument {', '.join(sorted(unknown))}; its arguments are {', '.join(sorted(hints))}")
    found: dict[str, Any] = {}
    for name, hint in hints.items():
        source = next((each for each in (own, *sources) if _has(each, name)), None)
        value = _plain(source[name] if isinstance(source, Mapping) else getattr(source, name, None), hint)
        if value is not None or (source is not None and NoneType in get_args(hint)):
            found[name] = value
    if missing := getattr(kind, "__required_keys__") - found.keys():  # noqa: B009 -- a type checker knows it of no type variable
        raise TypeError(f"{kind.__name__} requires {', '.join(sorted(missing))}, in its arguments or in a source")
    return cast("ArgsT", found)


_DEFAULTS: dict[type, Mapping[str, object]] = {}


def defaults(**values: object) -> Callable[[type[ArgsT]], type[ArgsT]]:
    """Declare the defaults of a component's arguments, or of a part of them, except those that are None, empty or false."""

    def declared(kind: type[ArgsT]) -> type[ArgsT]:
        _DEFAULTS[kind] = values
        return kind

    return declared


def default_of(kind: type, name: str) -> Any:
    """Return the default of an optional argument."""
    if name in (own := _DEFAULTS.get(kind, {})):
        return own[name]
    [hint] = get_args(kind.__annotations__[name])
    if NoneType in get_args(hint):
        return None
    empty: type = dict if is_typeddict(hint) else get_origin(hint) or hint
    return empty()


def filled(kind: type[ArgsT], args: ArgsT) -> ArgsT:
    """Return the arguments, with defaults for those that are not given."""
    given = {name: value for name, value in cast("Mapping[str, Any]", args).items() if value is not None}
    optional: frozenset[str] = getattr(kind, "__optional_keys__")  # noqa: B009 -- a type checker knows it of no type variable
    return cast("ArgsT", {name: default_of(kind, name) for name in optional - given.keys()} | given)


def _has(source: object, name: str) -> bool:
    return name in source if isinstance(source, Mapping) else hasattr(source, name)


def _plain(value: Any, hint: Any) -> Any:
    """Return a value as an argument of the type `hint`: records as maps of the arguments that the type declares, tuples as lists."""
    if get_origin(hint) in {Union, UnionType}:
        hint = next(each for each in get_args(hint) if each is not NoneType)
    within = (get_args(hint) or [None])[-1]
    match value:
        case Enum():
            return value.value
        case dict():
            return {_plain(key, str): _plain(each, within) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each, within) for each in value]
        case Record() if not is_typeddict(hint):
            return value.model_dump(mode="json")
        case _:
            return arguments(hint, value) if is_typeddict(hint) and value is not None else value


def publish(component: pulumi.ComponentResource) -> None:
    """Register the outputs that the component's class declares. It is the last step of a constructor."""
    component.register_outputs({name: getattr(component, name) for name in get_annotations(type(component))})


def refuse(where: str, problem: SettingsProblem) -> NoReturn:
    """Raise ValueError with the message of a settings problem, beginning with the component."""
    raise ValueError(f"{where}: {problem}")


def refuse_first(where: str, problems: Iterable[SettingsProblem]) -> None:
    """Raise ValueError, beginning with `where`, for the first of `problems`, if there is one."""
    for each in problems:
        refuse(where, each)


def checked_options(where: str, model: type[OptionsT], args: Mapping[str, object], *only: str) -> OptionsT:
    """Return the options that arguments and settings have in common. Those that are not given have the settings' defaults.

    With `only`, other arguments are ignored, such as those that may be outputs. Raises ValueError, beginning with `where`, for values that
    the settings' model rejects.
    """
    given = {name: args[name] for name in only or model.model_fields if args.get(name) is not None}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        problem, allowed = problem_and_remedy(first)
        if not first["loc"]:
            # A problem of several arguments together names them itself.
            raise ValueError(f"{where}: {'; '.join(filter(None, (problem, allowed)))}") from error
        refuse(where, SettingsProblem(".".join(map(str, first["loc"])), shown(first["input"]), problem, allowed))


def ipv4_range(where: str, written: str) -> IPv4Network:
    """Return `written` as an IPv4 range. Raises ValueError, beginning with `where`, if it is not one or has host bits."""
    try:
        return IPv4Network(written)
    except ValueError as error:
        raise ValueError(f"{where} (is {written!r}): must be an IPv4 range without host bits, such as 10.0.0.0/20 ({error})") from error


class NodeTaint(TypedDict):
    """A taint of nodes."""

    key: str
    """The taint's key, such as nvidia.com/gpu."""

    value: str
    """The taint's value. An empty value means none."""

    effect: str
    """The effect as Kubernetes spells it: NoSchedule, PreferNoSchedule or NoExecute."""


class PlacementArgs(TypedDict):
    """Nodes on which a controller's pods run."""

    node_selector: NotRequired[dict[str, str]]
    """Labels that these nodes must have. Default: none, any node."""

    tolerations: NotRequired[list[dict[str, str]]]
    """Tolerations for the taints of these nodes. Default: none."""


class ControllerArgs(PlacementArgs):
    """Release and replicas of a controller, and the nodes that they run on."""

    version: NotRequired[str | None]
    """Version of the controller's chart. Default: that of flexspot/capacity/catalog/versions.yaml."""

    replicas: NotRequired[int]
    """Number of replicas. One is the leader, and all answer webhooks. Default: 2, of which one always stays available."""


class RoleOptionsArgs(TypedDict):
    """IAM path and permissions boundary of the roles of a component."""

    iam_path: NotRequired[str | None]
    """IAM path of its roles and policies, with a slash at both ends, such as /platform/. A different path replaces them. Default: /."""

    permissions_boundary: NotRequired[str | None]
    """ARN of the permissions boundary of its roles. Default: none."""


def check_role_options(where: str, iam_path: str | None, permissions_boundary: str | None) -> None:
    """Raise ValueError, beginning with `where`, for values that IAM would reject."""
    if iam_path is not None:
        check_form(f"{where} iam_path", iam_path, IAM_PATH)
    if permissions_boundary is not None:
        check_form(f"{where} permissions_boundary", permissions_boundary, IAM_POLICY)
