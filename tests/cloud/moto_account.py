"""An AWS account in moto, and a run of the program that creates its resources there, as `up` does, without the engine and the provider."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import boto3
from aws_calls import create
from aws_models import operation_model, refused
from botocore import xform_name
from botocore.validate import ParamValidator
from program_declarations import Declared, Preview, declared, shipped

from flexspot.lab.providers.values import is_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_order import Made
    from moto.core.config import DefaultConfig

ACCOUNT = "123456789012"
"""Moto's default account."""

REGION = "us-east-1"

MANAGED: DefaultConfig = {"iam": {"load_aws_managed_policies": True}}
"""Makes moto load AWS's own policies."""

ANSWERS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "CreateAddon": lambda _: {},
    "UpdateAddon": lambda _: {},
    "CreateAccessEntry": lambda _: {},
    "AssociateAccessPolicy": lambda _: {},
    "CreatePodIdentityAssociation": lambda asked: {"association": {"associationId": f"a-{asked['namespace']}"}},
    "CreateDataRepositoryAssociation": lambda _: {"Association": {"AssociationId": "dra-0123456789abcdef0"}},
}
"""Operations that moto 5.2.5 does not have. Only botocore's model judges their requests, which are answered here.

moto/eks/responses.py has clusters, node groups and Fargate profiles, no add-ons, access entries or Pod Identity associations.
moto/fsx/responses.py has only file systems and backups.
"""


class RefusedRequestError(Exception):
    """Raised for a request that AWS's own model does not allow."""


class MotoAccount:
    """An account that forwards known operations to moto, and keeps every request."""

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._turn = threading.RLock()
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    def client(self, service: str) -> Any:
        """Return a client of boto3."""
        with self._turn:
            if service not in self._clients:
                self._clients[service] = cast("Any", boto3).client(service, region_name=REGION)
            return self._clients[service]

    def call(self, service: str, operation: str, parameters: dict[str, Any]) -> Any:
        """Send the request if AWS's model accepts it."""
        model = operation_model(service, operation)
        assert model.input_shape is not None
        problems = [*refused(model.input_shape, parameters, operation)]
        if report := ParamValidator().validate(parameters, model.input_shape).generate_report():
            problems.append(report)
        if problems:
            raise RefusedRequestError("; ".join(problems))
        with self._turn:
            self.asked.append((service, operation, parameters))
            if operation in ANSWERS:
                return ANSWERS[operation](parameters)
            answer = getattr(self.client(service), xform_name(operation))(**parameters)
            return self._as_aws(operation, answer)

    def _as_aws(self, operation: str, answer: Any) -> Any:
        """Add what AWS does and moto does not: create a security group for a cluster."""
        if operation == "CreateCluster" and "clusterSecurityGroupId" not in answer["cluster"]["resourcesVpcConfig"]:
            subnets = self.client("ec2").describe_subnets(SubnetIds=answer["cluster"]["resourcesVpcConfig"]["subnetIds"])["Subnets"]
            name = f"eks-cluster-sg-{answer['cluster']['name']}"
            group = self.client("ec2").create_security_group(GroupName=name, Description="EKS", VpcId=subnets[0]["VpcId"])
            answer["cluster"]["resourcesVpcConfig"]["clusterSecurityGroupId"] = group["GroupId"]
        return answer


class Up(Preview):
    """Monitor that creates every AWS resource in the account when the program registers it, and returns AWS's outputs."""

    def __init__(self, account: MotoAccount) -> None:
        super().__init__()
        self.account = account
        self.created: dict[str, Made] = {}

    def made(self, declared: Declared) -> tuple[str, dict[str, Any]]:
        """Return the id and the outputs. Resources of other providers count as created."""
        if not declared.type.startswith("aws:"):
            return declared.name, {}
        made = create(self.account, declared.type, declared.inputs)
        self.created[f"{declared.type} {declared.name}"] = made
        return str(made.identity), dict(made.outputs)


def up(stack: str, account: MotoAccount, **changes: Any) -> Up:
    """Deploy a shipped stack with the settings in `changes`."""
    run = Up(account)
    declared(stack, shipped(stack, account=ACCOUNT, **changes), run)
    return run


def ec2(run: Up, what: str, **arguments: Any) -> list[dict[str, Any]]:
    answer = getattr(run.account.client("ec2"), f"describe_{what}")(**arguments)
    return next(value for value in answer.values() if is_list(value))


def named(run: Up, what: str) -> dict[str, dict[str, Any]]:
    """Return the EC2 resources of one kind, by the tag Name."""
    tagged = [({tag["Key"]: tag["Value"] for tag in each.get("Tags", [])}, each) for each in ec2(run, what)]
    return {tags["Name"]: each for tags, each in tagged if tags.get("cluster")}


def asked(run: Up, operation: str) -> list[dict[str, Any]]:
    return [parameters for _, name, parameters in run.account.asked if name == operation]
