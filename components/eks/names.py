"""Names and places as AWS accepts them, and the ARNs made of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from capacity.values.names import AWS_REGION, EKS_CLUSTER, FORMS

ROLE_NAME_LENGTH = 64
"""Of IAM roles (IAM user guide, quotas). An EKS cluster's name has up to 100 characters, so names made of it are fitted."""

PARTITIONS = {"aws": "", "aws-cn": "cn-", "aws-us-gov": "us-gov-"}
"""AWS's partitions, by what the names of their regions begin with."""

_ACCOUNT = re.compile(r"\d{12}")


@dataclass(frozen=True)
class EksPlace:
    """Where everything of a stack is, in AWS's words, and the tags of all that has tags."""

    cluster: str
    account: str
    partition: str
    region: str
    tags: dict[str, str]


def check_form(where: str, value: str, pattern: str) -> None:
    """Raises ValueError, beginning with `where`, for a value that is not of one of the forms of capacity.values.names."""
    if not re.fullmatch(pattern, value):
        raise ValueError(f"{where} is {value!r}; allowed is {FORMS[pattern]}; correct it")


def check_cluster_name(where: str, cluster: str) -> None:
    """Raises ValueError for what cannot be the name of an EKS cluster."""
    check_form(f"{where} cluster", cluster, EKS_CLUSTER)


def check_choice(where: str, value: str, allowed: list[str]) -> None:
    """Raises ValueError, beginning with `where`, for a value that is none of those allowed."""
    if value not in allowed:
        raise ValueError(f"{where} is {value!r}; allowed: {', '.join(allowed)}; choose one of them")


def check_place(where: str, account: str, partition: str, region: str) -> None:
    """Raises ValueError for an account, a partition or a region that AWS does not have, and for a region of another partition."""
    if not _ACCOUNT.fullmatch(account):
        raise ValueError(
            f"{where} account is {account!r}; allowed is an account's id, 12 digits, in quotes; `aws sts get-caller-identity` shows it"
        )
    check_choice(f"{where} partition", partition, list(PARTITIONS))
    check_form(f"{where} region", region, AWS_REGION)
    home = partition_of(region)
    if home != partition:
        raise ValueError(
            f"{where} partition is {partition!r} with region {region}; allowed is the region's own, {home}; correct one of them"
        )


def partition_of(region: str) -> str:
    """The partition of a region."""
    return next((partition for partition, prefix in PARTITIONS.items() if prefix and region.startswith(prefix)), "aws")


def cluster_arn(partition: str, region: str, account: str, cluster: str) -> str:
    """The ARN of an EKS cluster, which is known before the cluster is there."""
    return f"arn:{partition}:eks:{region}:{account}:cluster/{cluster}"


def managed_policy(partition: str, policy: str) -> str:
    """The ARN of a policy of AWS's own; `policy` with its path, if it has one."""
    return f"arn:{partition}:iam::aws:policy/{policy}"
