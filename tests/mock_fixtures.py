"""Pulumi's mocks: what a program registers, without an engine; registered by the tests' conftest.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from flexspot.lab.providers.offline import UNANSWERED

if TYPE_CHECKING:
    from collections.abc import Callable


_ACCOUNT = "gcp:serviceaccount/account:Account"
_ACCESS_POINT = "aws:efs/accessPoint:AccessPoint"
_SERVICE_IDENTITY = "gcp:projects/serviceIdentity:ServiceIdentity"


@dataclass
class Registered:
    """The registered resources."""

    resources: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """Type, name and inputs of each, in order of registration."""

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the inputs of the resources of one type token, in the order of `names`."""
        return [inputs for _, inputs in sorted(((n, i) for token, n, i in self.resources if token == kind), key=lambda each: each[0])]

    def names(self, kind: str) -> list[str]:
        """Return the Pulumi names of the resources of one type token, sorted, as their order of creation varies."""
        return sorted(name for token, name, _ in self.resources if token == kind)


def _answer(token: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs that a cloud adds to a resource and that other resources need."""
    if token == _ACCOUNT:
        email = f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"
        return {"email": email, "name": f"projects/{inputs['project']}/serviceAccounts/{email}", "member": f"serviceAccount:{email}"}
    if token == _SERVICE_IDENTITY:
        email = f"service-1@gcp-sa-{inputs['service'].partition('.')[0]}.iam.gserviceaccount.com"
        return {"email": email, "member": f"serviceAccount:{email}"}
    if token == _ACCESS_POINT:
        return {"arn": f"arn:aws:elasticfilesystem:us-east-1:111122223333:access-point/fsap-{inputs['tags']['team']}"}
    return {}


class _Mocks(pulumi.runtime.Mocks):
    def __init__(self, registered: Registered) -> None:
        self.registered = registered

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs: dict[str, Any] = dict(args.inputs)
        self.registered.resources.append((args.typ, args.name, inputs))
        return f"{args.name}-id", inputs | _answer(args.typ, inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        assert args.token in UNANSWERED, f"components call no other function; {args.token} was called"
        return {}, []


@pytest.fixture
def register() -> Callable[[Callable[[], object]], Registered]:
    """Return a function that runs a declaration of components and returns the registered resources."""

    def run(declare: Callable[[], object]) -> Registered:
        registered = Registered()
        pulumi.runtime.set_mocks(_Mocks(registered), preview=False)

        @pulumi.runtime.test
        def program() -> None:
            declare()

        program()
        return registered

    return run
