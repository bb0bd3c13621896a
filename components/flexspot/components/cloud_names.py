"""Names, regions, tags, labels and keys as AWS and Google Cloud accept them, and ARNs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.platform import PARTITIONS, partition_of
from flexspot.capacity.values.names import (
    AWS_KEY,
    AWS_REGION,
    AWS_TAG_KEY,
    AWS_TAG_KEY_CHARACTERS,
    AWS_TAG_VALUE,
    AWS_TAG_VALUE_CHARACTERS,
    EKS_CLUSTER,
    FORMS,
    GCP_PROJECT,
)

if TYPE_CHECKING:
    import pulumi


_HASH_LENGTH = 8


def fitted(name: str, limit: int) -> str:
    """Return `name`, or if it is longer than `limit`, its beginning, a hyphen and eight digits of its hash.

    The result depends only on the two arguments, so a name does not change from one `up` to the next, and two long names with the same
    beginning stay different. If a name begins with a letter and has only lower-case letters, digits and hyphens, so does the result, and it
    does not end with a hyphen. Raises ValueError for a limit that leaves no room for a letter before the hash.
    """
    if limit < _HASH_LENGTH + 2:
        raise ValueError(f"limit (is {limit}): must be at least {_HASH_LENGTH + 2} characters to shorten {name!r}")
    if len(name) <= limit:
        return name
    digits = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: limit - _HASH_LENGTH - 1].rstrip('-._')}-{digits}"


ROLE_NAME_LENGTH = 64
"""Maximum length of a role's name (IAM user guide, quotas). Names built from an EKS cluster's name, up to 100 characters, are fitted."""

DISCOVERY_TAG = "karpenter.sh/discovery"
"""Tag by which Karpenter's node classes find subnets and security groups. Its value is the cluster's name."""

_ACCOUNT = re.compile(r"\d{12}")


@dataclass(frozen=True)
class EksPlace:
    """Cluster, account and region of a stack's resources, and the tags of every resource that can have tags.

    `iam_path` and `permissions_boundary` are those of RoleOptionsArgs.
    """

    cluster: str
    account: str
    partition: str
    region: str
    tags: dict[str, str]
    iam_path: str | None = None
    permissions_boundary: str | None = None


def check_form(where: str, value: str, pattern: str) -> None:
    """Raise ValueError, beginning with `where`, for a value that does not match `pattern`, one of flexspot.capacity.values.names."""
    if not re.fullmatch(pattern, value):
        raise ValueError(f"{where} (is {value!r}): must be {FORMS[pattern]}")


def check_cluster_name(where: str, cluster: str) -> None:
    """Raise ValueError if `cluster` cannot be the name of an EKS cluster."""
    check_form(f"{where} cluster", cluster, EKS_CLUSTER)


def check_choice(where: str, value: str, allowed: list[str]) -> None:
    """Raise ValueError, beginning with `where`, if a value is not one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{where} (is {value!r}): must be one of {', '.join(allowed)}")


def check_place(where: str, account: str, partition: str, region: str) -> None:
    """Raise ValueError for an account, partition or region that cannot exist, and for a region of another partition."""
    if not _ACCOUNT.fullmatch(account):
        raise ValueError(
            f"{where} account (is {account!r}): must be an account ID, 12 digits in quotes; run `aws sts get-caller-identity` to see it"
        )
    check_choice(f"{where} partition", partition, list(PARTITIONS))
    check_form(f"{where} region", region, AWS_REGION)
    home = partition_of(region)
    if home != partition:
        raise ValueError(f"{where} partition (is {partition!r}): region {region} is in partition {home}; change one of the two")


def cluster_arn(partition: str, region: str, account: str, cluster: str) -> str:
    """Return the ARN of an EKS cluster, which is known before the cluster exists."""
    return f"arn:{partition}:eks:{region}:{account}:cluster/{cluster}"


def managed_policy(partition: str, policy: str) -> str:
    """Return the ARN of a policy that AWS manages. `policy` includes its path, if it has one."""
    return f"arn:{partition}:iam::aws:policy/{policy}"


POLICY_NAME_CHARACTERS = 128
RULE_NAME_CHARACTERS = 64
QUEUE_NAME_CHARACTERS = 80
SECURITY_GROUP_NAME_CHARACTERS = 255
"""Limits of managed policies, EventBridge rules, SQS queues and security groups, as their API references state them."""

NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "karpenter"
"""Namespace and service account of Karpenter's controller. The release uses them, and its pod identity is bound to them."""


def node_role_name(cluster: str) -> str:
    """Return the name of the role of Karpenter's nodes. Their EC2NodeClass and the controller's permission to pass the role use it."""
    return fitted(f"KarpenterNodeRole-{cluster}", ROLE_NAME_LENGTH)


def controller_role_name(cluster: str) -> str:
    """Return the name of the controller's role."""
    return fitted(f"KarpenterControllerRole-{cluster}", ROLE_NAME_LENGTH)


def controller_policy_name(policy: str, cluster: str) -> str:
    """Return the name of one of the controller's managed policies, such as NodeLifecycle, as Karpenter's template names it."""
    return fitted(f"KarpenterController{policy}Policy-{cluster}", POLICY_NAME_CHARACTERS)


def queue_name(cluster: str) -> str:
    """Return the name of the interruption queue, which is the cluster's."""
    return fitted(cluster, QUEUE_NAME_CHARACTERS)


def rule_name(cluster: str, event: str) -> str:
    """Return the name of the rule that sends one kind of event, such as rebalance, to the queue."""
    return fitted(f"{cluster}-{event}", RULE_NAME_CHARACTERS)


_TAGS = 50
_TAG_KEY = re.compile(AWS_TAG_KEY)
_TAG_VALUE = re.compile(AWS_TAG_VALUE)
_KEY = re.compile(AWS_KEY)


def check_aws_tags(owner: str, tags: dict[str, str]) -> None:
    """Raise ValueError for a tag that AWS would reject.

    The limits are common to all services: https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
    """
    if len(tags) > _TAGS:
        raise ValueError(f"{owner}: tags: {len(tags)} exceed AWS's limit of {_TAGS} per resource; remove some")
    for key, value in tags.items():
        if not _TAG_KEY.fullmatch(key) or len(key) > AWS_TAG_KEY_CHARACTERS or key.lower().startswith("aws:"):
            raise ValueError(
                f"{owner}: tags: the key {key!r} must have 1 to 128 letters, digits, spaces and _.:/=+-@, and must not begin with "
                "aws:; rename it"
            )
        if not _TAG_VALUE.fullmatch(value) or len(value) > AWS_TAG_VALUE_CHARACTERS:
            raise ValueError(
                f"{owner}: tags.{key} (is {value!r}): must have at most 256 letters, digits, spaces and _.:/=+-@; shorten or rewrite it"
            )


def check_kms_key(owner: str, key: pulumi.Input[str] | None) -> None:
    """Raise ValueError for a key that is known and is not an ARN.

    A policy cannot name an alias, because permissions are for the key behind it. S3 looks up an alias in the account that writes.
    https://docs.aws.amazon.com/kms/latest/developerguide/cmks-in-iam-policies.html
    """
    if isinstance(key, str) and not _KEY.fullmatch(key):
        raise ValueError(f"{owner}: kms_key (is {key!r}): must be {FORMS[AWS_KEY]}; run `aws kms describe-key --key-id ALIAS` to see it")


NETWORK_NAME_LENGTH = 63
"""Maximum length of names of networks, subnetworks, routers and secondary ranges (RFC 1035)."""

CLUSTER_NAME_LENGTH = 40
ACCOUNT_ID_LENGTH = 30

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


def check_name(where: str, name: str, longest: int, shortest: int = 1) -> None:
    """Raise ValueError, beginning with `where`, for a name that Google Cloud would reject."""
    if not _NAME.fullmatch(name) or not shortest <= len(name) <= longest:
        raise ValueError(
            f"{where} (is {name!r}): must be {shortest} to {longest} lower-case letters, digits and hyphens, beginning with a letter and "
            "not ending with a hyphen; rename it"
        )


def check_project(where: str, project: str) -> None:
    """Raise ValueError, beginning with `where`, if `project` cannot be the id of a project."""
    if not re.fullmatch(GCP_PROJECT, project):
        raise ValueError(
            f"{where} (is {project!r}): must be a project ID of 6 to 30 lower-case letters, digits and hyphens, not a number or a display "
            "name; run `gcloud projects list` to see it"
        )


_LABELS = 64
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


def check_gcp_labels(owner: str, labels: dict[str, str]) -> None:
    """Raise ValueError for a label that Google Cloud would reject.

    The APIs state the pattern (such as gcp.parallelstore.Instance in pulumi_gcp) and the number, 64 per resource.
    """
    if len(labels) > _LABELS:
        raise ValueError(f"{owner}: labels: {len(labels)} exceed Google Cloud's limit of {_LABELS} per resource; remove some")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise ValueError(
                f"{owner}: labels: the key {key!r} must be a lower-case letter and up to 62 of a-z, 0-9, - and _; "
                f"write {_key_suggestion(key)!r}"
            )
        if not _LABEL_VALUE.fullmatch(value):
            raise ValueError(f"{owner}: labels.{key} (is {value!r}): must have at most 63 of a-z, 0-9, - and _; shorten or rewrite it")


def _key_suggestion(key: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", key.lower()).lstrip("-_0123456789")[:63] or "label"
