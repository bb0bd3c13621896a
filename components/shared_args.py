"""Arguments that several components take, and how arguments are checked and refused."""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network
from typing import NoReturn, TypedDict, TypeVar

from pydantic import ValidationError

from capacity.catalog.data_files import DescribedRecord
from capacity.settings.stack_file import said, shown
from capacity.values.errors import SettingsProblem

OptionsT = TypeVar("OptionsT", bound=DescribedRecord)


def refuse(where: str, problem: SettingsProblem) -> NoReturn:
    """Raises ValueError with the words that a stack file's settings are refused with, beginning with the component."""
    raise ValueError(f"{where}: {problem}")


def refuse_first(where: str, problems: Iterable[SettingsProblem]) -> None:
    """Raises ValueError, beginning with `where`, for the first of `problems` if there is one."""
    for each in problems:
        refuse(where, each)


def checked_options(where: str, model: type[OptionsT], args: Mapping[str, object]) -> OptionsT:
    """The options that arguments and settings have in common, those that are not given as the settings have them by default.

    Raises ValueError, beginning with `where`, for what the settings' model refuses.
    """
    given = {name: args[name] for name in model.model_fields if args.get(name) is not None}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        problem, allowed = said(first)
        if not first["loc"]:
            # Of what several arguments together say, the problem names them.
            raise ValueError(f"{where}: {problem}; {allowed}") from error
        refuse(where, SettingsProblem(".".join(map(str, first["loc"])), shown(first["input"]), problem, allowed))


def ipv4_range(where: str, written: str) -> IPv4Network:
    """`written` as an IPv4 range. Raises ValueError, beginning with `where`, if it is none or has host bits."""
    try:
        return IPv4Network(written)
    except ValueError as error:
        raise ValueError(
            f"{where} is {written!r}; allowed is an IPv4 range without host bits, such as 10.0.0.0/20; correct it ({error})"
        ) from error


class NodeTaint(TypedDict):
    """A taint of nodes; `effect` as Kubernetes spells it, such as NoSchedule."""

    key: str
    value: str
    effect: str
