"""Under which id a resource is found that an interrupted run may have created: from its inputs, or by asking AWS."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

from infra.deployment.aws_search import AwsSearch
from infra.deployment.interrupted import NotIdentified
from infra.deployment.resource_ids import resource_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.deployment.aws_search import Clients
    from infra.deployment.interrupted import Begun

_AWS = "aws:"


class Identifying:
    """`place` is what resource_id needs of the stack; without `clients`, boto3's own are made for the region of `place`."""

    def __init__(self, place: Mapping[str, str], clients: Clients | None = None) -> None:
        self._place = place
        self._clients = clients

    def identify(self, begun: Begun, taken: frozenset[str]) -> str | NotIdentified | None:
        """The id, None when it is certain that there is no such resource; `taken` are ids of other resources."""
        if known := resource_id(begun.token, begun.inputs, self._place):
            return known
        if not begun.token.startswith(_AWS):
            return NotIdentified()
        found = AwsSearch(self._clients or self._own_clients()).ids(begun.token, begun.inputs)
        if found is None:
            return NotIdentified()
        left = [each for each in found if each not in taken]
        if len(left) > 1:
            return NotIdentified()
        return left[0] if left else None

    def _own_clients(self) -> Clients:
        import boto3  # noqa: PLC0415

        make = cast("Clients", functools.partial(cast("Any", boto3).client, region_name=self._place["region"]))
        return functools.cache(make)
