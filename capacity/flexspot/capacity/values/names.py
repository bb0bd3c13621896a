"""Patterns of names and other short texts, each with its description."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from pydantic import Field

_FORMS: dict[str, str] = {}

FORMS = MappingProxyType(_FORMS)
"""Descriptions of all patterns, by pattern."""


def _form(pattern: str, words: str) -> str:
    if pattern in _FORMS:
        raise ValueError(f"{pattern} has words already: {_FORMS[pattern]}")
    _FORMS[pattern] = words
    return pattern


NAME = _form(
    r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$",
    "lower-case letters, digits and inner hyphens, beginning with a letter, 40 at most, such as l4-spot",
)
GCP_PROJECT = _form(
    r"^([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$", "a project id of 6 to 30 lower-case letters, digits and hyphens, such as acme-ai-prod"
)
GCP_REGION = _form(r"^[a-z]+-[a-z]+\d+$", "a region such as us-central1")
AWS_REGION = _form(r"^[a-z]{2}(-[a-z]+)+-\d$", "a region such as us-east-1")
ZONE = _form(r"^[a-z0-9-]+$", "a zone, or on EKS the id of one, such as us-central1-a, us-east-1a or use1-az1")
GKE_VERSION = _form(r"^1\.\d+(\.\d+(-gke\.\d+)?)?$", "a version in quotes such as '1.35' or '1.35.0-gke.1171000'")
EKS_VERSION = _form(r"^1\.\d+$", "a version in quotes such as '1.35'")
ADDON_VERSION = _form(r"^v\d+\.\d+\.\d+-eksbuild\.\d+$", "a version as EKS writes it, such as v1.14.3-eksbuild.3")
ADDON_VERSION_OR_DEFAULT = _form(
    r"^(v\d+\.\d+\.\d+-eksbuild\.\d+|default|recommended)$",
    "default or recommended, for EKS's own on the first day or at each up, or a version as EKS writes it, such as v1.14.3-eksbuild.3",
)
CHART_VERSION = _form(r"^v?\d+\.\d+\.\d+$", "the version of a chart, such as 1.14.1")
EKS_CLUSTER = _form(r"^[a-zA-Z0-9][a-zA-Z0-9_-]{0,99}$", "letters, digits, hyphens and underscores, 100 at most")
AMI_ALIAS = _form(
    r"^((al2023|bottlerocket)@(v?\d[\w.-]*|latest))$", "an alias with its release, such as al2023@v20260903 or bottlerocket@1.65.0"
)
AWS_ACCOUNT = _form(r"^\d{12}$", "an account's number, 12 digits in quotes, such as '111122223333'")
IAM_ROLE = _form(
    r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$", "the ARN of a role such as arn:aws:iam::111122223333:role/platform-admins"
)
IAM_ROLE_NAME = _form(r"^[\w+=,.@-]{1,64}$", "the name of a role, without its path, such as KarpenterNodeRole-ml")
IAM_PATH = _form(r"^/([\w+=,.@-]+/)*$", "a path of IAM, with a slash at both ends, such as /platform/")
IAM_POLICY = _form(
    r"^arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+$",
    "the ARN of a managed policy such as arn:aws:iam::111122223333:policy/boundary",
)
AWS_TAG_KEY = _form(r"^[\w .:/=+@-]+$", "a tag's key of letters, digits, spaces and _.:/=+-@, such as CostCenter")
AWS_TAG_VALUE = _form(r"^[\w .:/=+@-]*$", "a tag's value of letters, digits, spaces and _.:/=+-@, such as 4711")
AWS_TAG_KEY_CHARACTERS, AWS_TAG_VALUE_CHARACTERS = 128, 256
GCP_KEY = _form(
    r"^projects/[a-z0-9.:-]+/locations/[a-z0-9-]+/keyRings/[\w-]{1,63}/cryptoKeys/[\w-]{1,63}$",
    "a key's name such as projects/acme-ai-prod/locations/us-central1/keyRings/ai/cryptoKeys/buckets",
)
AWS_KEY = _form(
    r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[\w-]{1,64}$",
    "a key's ARN such as arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
)
VPC = _form(r"^vpc-[0-9a-f]{8,17}$", "the id of a VPC, such as vpc-0a1b2c3d4e5f60718")
SUBNET = _form(r"^subnet-[0-9a-f]{8,17}$", "the id of a subnet, such as subnet-0a1b2c3d4e5f60718")
CAPACITY_RESERVATION = _form(r"^cr-[0-9a-f]{8,17}$", "the id of a capacity reservation, such as cr-0a1b2c3d4e5f60718")
DOMAIN = _form(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$", "a domain such as acme.com")
CRON = _form(
    r"^([\d*/,-]+ ){3}([\d*/,-]+|[a-z]{3}([,-][a-z]{3})*) ([\d*/,-]+|[a-z]{3}([,-][a-z]{3})*)$",
    "minute, hour, day, month and weekday of cron in quotes, such as '0 8 * * mon-fri'",
)
DAY = _form(r"^\d{4}-\d{2}-\d{2}$", "a day in quotes, as YYYY-MM-DD")
TIME_OF_DAY = _form(r"^([01]\d|2[0-3]):[0-5]\d$", "a time of day in UTC, in quotes, such as '02:00'")
GPU_MODEL = _form(r"^[a-z][a-z0-9-]{0,62}$", "the name of a GPU in lower case, such as h100, a100-80gb or l4")
TPU_TOPOLOGY = _form(r"^[1-9]\d{0,2}(x[1-9]\d{0,2}){1,2}$", "two or three sides in chips, such as 4x4 or 2x2x4")
MIG_PARTITION = _form(r"^[1-7]g\.[1-9]\d*gb$", "a MIG partition such as 1g.5gb")
RESOURCE_NAME = _form(
    r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$", "a name of up to 63 lower-case letters, digits and inner hyphens, a letter first"
)
DISK_IMAGE = _form(
    r"^projects/[a-z0-9.:-]+/global/images/(family/)?[a-z]([a-z0-9-]{0,61}[a-z0-9])?$",
    "an image such as projects/acme-ai-prod/global/images/llama-weights",
)
LABEL_KEY = _form(
    r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
    "the key of a Kubernetes label, such as release or app.kubernetes.io/part-of",
)
LABEL_VALUE = _form(
    r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$",
    "the value of a Kubernetes label: up to 63 letters, digits and inner dots, hyphens and underscores",
)

GROUP = _form(
    r"^(arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+|[A-Za-z0-9][A-Za-z0-9._@:/+-]{0,252})$",
    "a Google group's address, on EKS the ARN of a role of IAM, or a group that the cluster knows, such as ml-nlp@example.com, "
    "arn:aws:iam::111122223333:role/nlp or nlp",
)
IMAGE = _form(
    r"^[a-z0-9][\w.-]*(:\d+)?(/[\w.-]+)*(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$",
    "an image, with a tag or a digest (@sha256:...), such as registry.example.com/team/trainer:1.4",
)
IMAGE_REPOSITORY = _form(
    r"^[a-z0-9][a-z0-9.-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)+$",
    "a repository with its registry and without a tag, such as 602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin",
)
EC2_MACHINE = _form(r"^[a-z]+\d+[a-z0-9-]*\.[a-z0-9-]+$", "an instance type of EC2, such as p6-b300.48xlarge")
GKE_MACHINE = _form(r"^[a-z]+\d+[a-z]*-[a-z0-9-]*[a-z0-9]$", "a machine type of Compute Engine, such as a4-highgpu-8g")
GPU_NAME = _form(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", "a GPU's name in lower case with hyphens, such as l4 or rtx-pro-server-6000")
VARIABLE = _form(r"^[A-Za-z_][A-Za-z0-9_]*$", "a variable's name, or the beginning of some, of letters, digits and _, such as WANDB_MODE")
OBJECT_NAME = _form(
    r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$", "the name of an object of Kubernetes: lower-case letters, digits, inner hyphens and dots"
)
DEPLOYMENT = _form(
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$",
    "a Deployment with its namespace, such as kube-system/karpenter",
)
MOUNT_PATH = _form(r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$", "a path from the root without a slash at its end, such as /data")
RESOURCE_KEY = _form(
    r"^([a-z0-9][a-z0-9.-]*/)?[a-z0-9A-Z][A-Za-z0-9._-]*$", "a resource of a node, such as ephemeral-storage or example.com/device"
)
AMOUNT = _form(r"^[1-9]\d*(k|Ki|M|Mi|G|Gi|T|Ti)?$", "a whole amount above 0, such as 4 or 200Gi")
CHECKPOINT_FOLDER = _form(
    r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$", "a relative path without a slash at its ends, such as bert/run-3"
)
MODEL_FOLDER = _form(
    r"^[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*$", "a folder of lower-case names, without a slash at its ends, such as shared/models"
)
BUCKET = _form(r"^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$", "the name of a bucket, without gs:// or s3://")
URL_PATH = _form(r"^/[A-Za-z0-9._~/-]*$", "a path from the root such as /health")
HOME_FOLDER = _form(r"^/[A-Za-z0-9._/-]+$", "a path from the root such as /home/jovyan")
KUBELET_QUANTITY = _form(r"^\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi)?$", "a Kubernetes quantity such as 200m, 1 or 512Mi")
EVICTION_THRESHOLD = _form(r"^(\d{1,2}(\.\d{1,2})?%|100(\.0{1,2})?%|\d+(\.\d+)?(Ki|Mi|Gi)?)$", "a share or an amount such as 5% or 500Mi")
DURATION = _form(r"^(\d+(h|m|s))+$", "a time such as 90s or 1m30s")
METRIC_QUANTITY = _form(r"^\d+(\.\d+)?(m|k|M|G)?$", "a Kubernetes quantity such as 10, 500m or 2k")

LabelValue = Annotated[str, Field(pattern=LABEL_VALUE, min_length=1)]
"""A label value that is not empty. Kubernetes also accepts an empty one."""

Name = Annotated[str, Field(pattern=NAME)]
"""A name that is valid for a Kubernetes object, a label value and a GKE node pool.

Lower-case letters, digits, inner hyphens; it begins with a letter; 40 characters at most (GKE's limit for node pools).
"""

Zone = Annotated[str, Field(pattern=ZONE)]
"""Name or id of a zone."""


def is_production(environment: str) -> bool:
    """Return whether an environment is for production: prod, production, or a name that begins with either and a hyphen."""
    return environment.partition("-")[0] in {"prod", "production"}


MOVING_TAGS = ("latest", "main", "master", "nightly", "dev", "edge", "stable")
"""Image tags that move: a replacement pod could run another version of the program."""


def unpinned_reason(image: str) -> str:
    """Return the reason why an image reference can change, or an empty string if it names a release or a digest."""
    if "@" in image:
        return ""
    # A colon before the last slash belongs to the registry's port.
    _, colon, tag = image.rpartition("/")[2].partition(":")
    if colon and tag not in MOVING_TAGS:
        return ""
    return f"has the tag {tag}, which moves" if colon else "has neither tag nor digest, which means latest"
