"""What an organisation asks of everything in its AWS account: tags of its own, and where IAM roles are and what bounds them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from capacity.catalog.data_files import DescribedRecord
from capacity.values.names import AWS_TAG_KEY, AWS_TAG_KEY_CHARACTERS, AWS_TAG_VALUE, AWS_TAG_VALUE_CHARACTERS, IAM_PATH, IAM_POLICY

SET_BY_THE_PLATFORM = ("Name", "cluster", "environment", "owner", "team", "workload-class")
"""Keys of tags that the platform sets itself."""

SET_BY_OTHERS = ("aws:", "ebs.csi.aws.com/", "eks:", "karpenter.k8s.aws/", "karpenter.sh/", "kubernetes.io/")
"""Beginnings of keys by which AWS, Karpenter, the EBS driver or the platform find and protect what is theirs."""

_MOST_TAGS = 35
"""AWS takes 50 for each resource; a node has up to eleven of the platform's, Karpenter's and the EBS driver's, and others may add some."""


def _own_tags(tags: dict[str, str]) -> dict[str, str]:
    """Tags that AWS takes beside the platform's. For IAM two keys are the same that differ in upper and lower case alone."""
    ours = {key.lower() for key in SET_BY_THE_PLATFORM}
    seen: set[str] = set()
    for key in tags:
        if key.lower() in ours or key.lower().startswith(SET_BY_OTHERS):
            raise ValueError(f"{key} is a tag that the platform, AWS, Karpenter or the EBS driver sets; leave it out")
        if key.lower() in seen:
            raise ValueError(f"{key} is there twice: IAM tells upper and lower case of a key not apart; leave one out")
        seen.add(key.lower())
    return tags


AwsTags = Annotated[
    dict[
        Annotated[str, Field(pattern=AWS_TAG_KEY, max_length=AWS_TAG_KEY_CHARACTERS)],
        Annotated[str, Field(pattern=AWS_TAG_VALUE, max_length=AWS_TAG_VALUE_CHARACTERS)],
    ],
    Field(max_length=_MOST_TAGS),
    AfterValidator(_own_tags),
]
"""Tags of one's own for AWS resources."""


class Iam(DescribedRecord):
    """The IAM path of the roles and policies that a stack creates, and the permissions boundary of the roles."""

    path: Annotated[str, Field(pattern=IAM_PATH, max_length=512)] = "/"
    """Path of the roles and of Karpenter's policies, such as /platform/. A different path replaces them."""

    permissions_boundary: Annotated[str, Field(pattern=IAM_POLICY)] | None = None
    """ARN of the permissions boundary that every role of the stack gets, where your organisation requires one. It must allow what each
    role needs. Default: none."""
