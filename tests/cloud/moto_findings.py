"""What there is in an AWS account of moto's, and what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.providers.values import is_list

if TYPE_CHECKING:
    from moto_account import MotoAccount, Up

ALL_THERE: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("ec2", "describe_vpcs", {}),
    ("ec2", "describe_subnets", {}),
    ("ec2", "describe_internet_gateways", {}),
    ("ec2", "describe_nat_gateways", {"Filter": [{"Name": "state", "Values": ["pending", "available"]}]}),
    ("ec2", "describe_addresses", {}),
    ("ec2", "describe_route_tables", {}),
    ("ec2", "describe_security_groups", {}),
    ("ec2", "describe_vpc_endpoints", {"Filters": [{"Name": "vpc-endpoint-state", "Values": ["pending", "available"]}]}),
    ("ec2", "describe_launch_templates", {}),
    ("eks", "list_clusters", {}),
    ("events", "list_rules", {}),
    ("iam", "list_policies", {"Scope": "Local"}),
    ("iam", "list_roles", {}),
    ("kms", "list_aliases", {}),
    ("logs", "describe_log_groups", {}),
    ("s3", "list_buckets", {}),
    ("sqs", "list_queues", {}),
)
"""Every list that the stacks' resources stand in."""


def everything(account: MotoAccount) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for service, method, arguments in ALL_THERE:
        answer = getattr(account.client(service), method)(**arguments)
        found[f"{service} {method}"] = {key: value for key, value in answer.items() if key not in {"ResponseMetadata", "Owner"}}
    return found


def ec2(run: Up, what: str, **arguments: Any) -> list[dict[str, Any]]:
    answer = getattr(run.account.client("ec2"), f"describe_{what}")(**arguments)
    return next(value for value in answer.values() if is_list(value))


def named(run: Up, what: str) -> dict[str, dict[str, Any]]:
    """What the stack made of a kind of EC2's, by the tag Name."""
    tagged = [({tag["Key"]: tag["Value"] for tag in each.get("Tags", [])}, each) for each in ec2(run, what)]
    return {tags["Name"]: each for tags, each in tagged if tags.get("cluster")}


def asked(run: Up, operation: str) -> list[dict[str, Any]]:
    return [parameters for _, name, parameters in run.account.asked if name == operation]
