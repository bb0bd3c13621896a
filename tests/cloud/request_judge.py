"""AWS's own models, applied to the requests that would create a program's resources, without creating any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_calls import create
from aws_models import UNKNOWN, UntranslatableError, operation_model, refused

from flexspot.lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from program_declarations import Declared


class PaperAccount:
    """An account that creates nothing. It judges requests; AWS's answers are unknown."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def call(self, service: str, operation: str, parameters: dict[str, Any]) -> Any:
        """Judge a request."""
        shape = operation_model(service, operation).input_shape
        assert shape is not None
        self.problems += refused(shape, parameters, operation)
        return UNKNOWN


def refused_requests(made: Iterable[Declared]) -> list[str]:
    """Return the objections to the requests of the AWS resources among these, each with the resource's name."""
    return [f"{each.name}: {problem}" for each in made if each.type.startswith("aws:") for problem in refused_of(each.type, each.inputs)]


def refused_of(kind: str, inputs: dict[str, Any]) -> list[str]:
    """Return the objections to one resource's requests: those of the models, or an input that has no place in them."""
    account = PaperAccount()
    try:
        create(account, kind, _known(inputs))
    except UntranslatableError as error:
        return [*account.problems, str(error)]
    return account.problems


def _known(value: Any) -> Any:
    if is_object(value):
        return UNKNOWN if value in ({"$unknown": True}, {"$secret": True}) else {key: _known(each) for key, each in value.items()}
    return [_known(each) for each in value] if is_list(value) else value
