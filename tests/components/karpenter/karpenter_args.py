"""Arguments of Karpenter's components for their tests, and a stand-in for AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from flexspot.components.cloud_names import node_role_name, queue_name
from flexspot.components.karpenter.controller_policies import ControllerScope

if TYPE_CHECKING:
    from collections.abc import Callable

ACCOUNT = "111122223333"
REGION = "eu-west-1"
LONG_NAME = "c" * 100
"""The longest name that EKS accepts."""

TAGS = {"environment": "prod", "owner": "ml-platform"}

QUEUE = "aws:sqs/queue:Queue"
ROLE = "aws:iam/role:Role"
POLICY = "aws:iam/policy:Policy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
RELEASE = "kubernetes:helm.sh/v3:Release"


def scope(cluster: str = "training", region: str = REGION, partition: str = "aws", account: str = ACCOUNT) -> ControllerScope:
    """Return the scope of a cluster's controller, with the names that its other components would have."""
    return ControllerScope(
        cluster=cluster,
        account=account,
        partition=partition,
        region=region,
        node_role_name=node_role_name(cluster),
        queue_name=queue_name(cluster),
    )


class Aws(pulumi.runtime.Mocks):
    """Answers with the values that AWS adds to a resource, and remembers requests."""

    def __init__(self, account: str = ACCOUNT) -> None:
        self.account = account
        self.resources: list[tuple[str, str, dict[str, Any]]] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs: dict[str, Any] = dict(args.inputs)
        self.resources.append((args.typ, args.name, inputs))
        name = inputs.get("name")
        if args.typ in {ROLE, POLICY}:
            return f"{args.name}-id", inputs | {"arn": f"arn:aws:iam::{self.account}:{args.typ.rpartition(':')[2].lower()}/{name}"}
        if args.typ == QUEUE:
            url = f"https://sqs.{REGION}.amazonaws.com/{self.account}/{name}"
            return url, inputs | {"arn": f"arn:aws:sqs:{REGION}:{self.account}:{name}", "url": url}
        return f"{args.name}-id", inputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"components must not invoke provider functions, but {args.token} was called")

    def of(self, token: str) -> dict[str, dict[str, Any]]:
        """Return the inputs of the resources of one type, by their Pulumi names."""
        return {name: inputs for kind, name, inputs in self.resources if kind == token}


def declared(declare: Callable[[], pulumi.ComponentResource], account: str = ACCOUNT) -> tuple[Aws, dict[str, Any]]:
    """Return the resources that a component registers with AWS's answers, and its outputs."""
    aws = Aws(account)
    pulumi.runtime.set_mocks(aws, preview=False)
    outputs: dict[str, Any] = {}

    @pulumi.runtime.test
    def program() -> pulumi.Output[None]:
        component = declare()
        names = list(type(component).__annotations__)
        found: list[pulumi.Output[Any]] = [getattr(component, name) for name in names]
        return pulumi.Output.all(*found).apply(lambda known: outputs.update(zip(names, known, strict=True)))

    program()
    return aws, outputs
