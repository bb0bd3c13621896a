"""Names, places, tags, labels and keys as AWS and Google Cloud accept them, and the ARNs made of them."""

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
    """`name` where it has at most `limit` characters; else its beginning, a hyphen and eight digits of its hash.

    The result depends on nothing but the two arguments, so a name does not change from one `up` to the next; two long names that begin
    alike stay apart. What begins with a letter and holds lower-case letters, digits and hyphens alone still does, and ends with none.
    Raises ValueError for a limit that leaves no room for a letter before the hash.
    """
    if limit < _HASH_LENGTH + 2:
        raise ValueError(f"{name!r} cannot be fitted into {limit} characters: {_HASH_LENGTH + 2} are the least")
    if len(name) <= limit:
        return name
    digits = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: limit - _HASH_LENGTH - 1].rstrip('-._')}-{digits}"


ROLE_NAME_LENGTH = 64
"""Of IAM roles (IAM user guide, quotas). An EKS cluster's name has up to 100 characters, so names made of it are fitted."""

DISCOVERY_TAG = "karpenter.sh/discovery"
"""By which Karpenter's node classes find subnets and security groups; its value is the cluster's name."""

_ACCOUNT = re.compile(r"\d{12}")


@dataclass(frozen=True)
class EksPlace:
    """Where everything of a stack is, in AWS's words, and the tags of all that has tags. The last two are those of RoleOptionsArgs."""

    cluster: str
    account: str
    partition: str
    region: str
    tags: dict[str, str]
    iam_path: str | None = None
    permissions_boundary: str | None = None


def check_form(where: str, value: str, pattern: str) -> None:
    """Raises ValueError, beginning with `where`, for a value that is not of one of the forms of flexspot.capacity.values.names."""
    if not re.fullmatch(pattern, value):
        raise ValueError(f"{where} is {value!r}; it must be {FORMS[pattern]}")


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
            f"{where} account is {account!r}; it must be an account's id, 12 digits, in quotes; `aws sts get-caller-identity` shows it"
        )
    check_choice(f"{where} partition", partition, list(PARTITIONS))
    check_form(f"{where} region", region, AWS_REGION)
    home = partition_of(region)
    if home != partition:
        raise ValueError(
            f"{where} partition is {partition!r} with region {region}; it must be the region's own, {home}; change one of the two"
        )


def cluster_arn(partition: str, region: str, account: str, cluster: str) -> str:
    """The ARN of an EKS cluster, which is known before the cluster is there."""
    return f"arn:{partition}:eks:{region}:{account}:cluster/{cluster}"


def managed_policy(partition: str, policy: str) -> str:
    """The ARN of a policy of AWS's own; `policy` with its path, if it has one."""
    return f"arn:{partition}:iam::aws:policy/{policy}"


POLICY_NAME_CHARACTERS = 128
RULE_NAME_CHARACTERS = 64
QUEUE_NAME_CHARACTERS = 80
SECURITY_GROUP_NAME_CHARACTERS = 255
"""Limits of managed policies, EventBridge rules, SQS queues and security groups, as their API references state them."""

NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "karpenter"
"""Where the controller runs and as whom: the release puts it there, and its pod identity is bound to it."""


def node_role_name(cluster: str) -> str:
    """The name of the role of Karpenter's nodes, which their EC2NodeClass and the controller's permission to pass it name."""
    return fitted(f"KarpenterNodeRole-{cluster}", ROLE_NAME_LENGTH)


def controller_role_name(cluster: str) -> str:
    """The name of the controller's role."""
    return fitted(f"KarpenterControllerRole-{cluster}", ROLE_NAME_LENGTH)


def controller_policy_name(policy: str, cluster: str) -> str:
    """The name of one of the controller's managed policies, such as that of NodeLifecycle; as Karpenter's own template names them."""
    return fitted(f"KarpenterController{policy}Policy-{cluster}", POLICY_NAME_CHARACTERS)


def queue_name(cluster: str) -> str:
    """The name of the interruption queue: the cluster's."""
    return fitted(cluster, QUEUE_NAME_CHARACTERS)


def rule_name(cluster: str, event: str) -> str:
    """The name of the rule that sends one kind of event, such as rebalance, to the queue."""
    return fitted(f"{cluster}-{event}", RULE_NAME_CHARACTERS)


_TAGS = 50
_TAG_KEY = re.compile(AWS_TAG_KEY)
_TAG_VALUE = re.compile(AWS_TAG_VALUE)
_KEY = re.compile(AWS_KEY)


def check_aws_tags(owner: str, tags: dict[str, str]) -> None:
    """Raises ValueError for a tag that AWS refuses.

    The limits are those that all services share: https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
    """
    if len(tags) > _TAGS:
        raise ValueError(f"{owner}: tags has {len(tags)} keys; a resource has at most {_TAGS}: leave some out")
    for key, value in tags.items():
        if not _TAG_KEY.fullmatch(key) or len(key) > AWS_TAG_KEY_CHARACTERS or key.lower().startswith("aws:"):
            raise ValueError(
                f"{owner}: tags has the key {key!r}; a key has 1 to 128 letters, digits, spaces and _.:/=+-@, and not aws: at its "
                "beginning: respell it"
            )
        if not _TAG_VALUE.fullmatch(value) or len(value) > AWS_TAG_VALUE_CHARACTERS:
            raise ValueError(
                f"{owner}: tags has {key}={value!r}; a value has at most 256 letters, digits, spaces and _.:/=+-@: shorten or respell it"
            )


def check_kms_key(owner: str, key: pulumi.Input[str] | None) -> None:
    """Raises ValueError for a plain key that is not given by its ARN.

    A policy cannot name an alias: it is the key behind it that permissions are for. And S3 looks an alias up in the account of whoever
    writes. https://docs.aws.amazon.com/kms/latest/developerguide/cmks-in-iam-policies.html
    """
    if isinstance(key, str) and not _KEY.fullmatch(key):
        raise ValueError(f"{owner}: kms_key is {key!r}; it must be {FORMS[AWS_KEY]}: `aws kms describe-key --key-id ALIAS` shows it")


NETWORK_NAME_LENGTH = 63
"""Of networks, subnetworks, routers and their secondary ranges (RFC 1035)."""

CLUSTER_NAME_LENGTH = 40
ACCOUNT_ID_LENGTH = 30

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


def check_name(where: str, name: str, longest: int, shortest: int = 1) -> None:
    """Raises ValueError, beginning with `where`, for a name that Google Cloud would refuse."""
    if not _NAME.fullmatch(name) or not shortest <= len(name) <= longest:
        raise ValueError(
            f"{where} is {name!r}; it must be {shortest} to {longest} lower-case letters, digits and hyphens, a letter first, no hyphen "
            "last; rename it"
        )


def check_project(where: str, project: str) -> None:
    """Raises ValueError, beginning with `where`, for what cannot be the id of a project."""
    if not re.fullmatch(GCP_PROJECT, project):
        raise ValueError(
            f"{where} is {project!r}; it must be a project's id, 6 to 30 lower-case letters, digits and hyphens, not its number or its "
            "display name; `gcloud projects list` shows it"
        )


_LABELS = 64
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


def check_gcp_labels(owner: str, labels: dict[str, str]) -> None:
    """Raises ValueError for a label that Google Cloud refuses.

    The forms are those that the APIs state (such as gcp.parallelstore.Instance in pulumi_gcp), as is the number, 64 a resource.
    """
    if len(labels) > _LABELS:
        raise ValueError(f"{owner}: labels has {len(labels)} keys; a resource has at most {_LABELS}: leave some out")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise ValueError(
                f"{owner}: labels has the key {key!r}; a key is a lower-case letter and up to 62 of a-z, 0-9, - and _: "
                f"write {_key_suggestion(key)!r}"
            )
        if not _LABEL_VALUE.fullmatch(value):
            raise ValueError(f"{owner}: labels has {key}={value!r}; a value has at most 63 of a-z, 0-9, - and _: shorten or respell it")


def _key_suggestion(key: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", key.lower()).lstrip("-_0123456789")[:63] or "label"
