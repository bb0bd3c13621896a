"""What a bucket is for, whose its folders are, and the names that Kubernetes gives to what is a team's; the same in every cloud."""

from __future__ import annotations

import re

from capacity.values.names import NAME
from capacity.workloads.names import CHECKPOINT_CLAIM, DATASET_CLAIM

CHECKPOINTS, DATASETS = CHECKPOINT_CLAIM, DATASET_CLAIM
"""The claims on them are called so in each namespace."""

PURPOSES = (CHECKPOINTS, DATASETS)

SHARED_FOLDER = "shared"
"""The folder of a dataset bucket that every team may read."""

_FOLDER = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")


def check_purpose(owner: str, purpose: str) -> None:
    """Raises ValueError for what is no purpose of a bucket."""
    if purpose not in PURPOSES:
        raise ValueError(f"{owner}: purpose is {purpose!r}; purposes are {' and '.join(PURPOSES)}: choose one")


def check_folder(owner: str, argument: str, folder: str) -> None:
    """Raises ValueError for what is no relative path of lower-case names."""
    if not _FOLDER.fullmatch(folder):
        raise ValueError(
            f"{owner}: {argument} has {folder!r}; a folder is a path such as vision/imagenet, of a-z, 0-9, ., - and _, "
            "without a slash at its ends: respell it"
        )


def check_dataset_folders(owner: str, folders: list[str], *, bucket_is_given: bool) -> None:
    """Raises ValueError for folders without the bucket that they are in, and for what is no folder."""
    if folders and not bucket_is_given:
        raise ValueError(f"{owner}: dataset_folders is {', '.join(folders)} without a dataset_bucket; name the bucket that they are in")
    for folder in folders:
        check_folder(owner, "dataset_folders", folder)


_NAME = re.compile(NAME)
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def check_setting_names(owner: str, names: dict[str, str]) -> None:
    """Raises ValueError for a name, by its argument, that the settings would refuse; it is then safe in a path and in a pattern."""
    for argument, value in names.items():
        if not _NAME.fullmatch(value):
            raise ValueError(f"{owner}: {argument} is {value!r}; a name has 1 to 40 of a-z, 0-9 and inner -, from a letter on: respell it")


def check_dns_labels(owner: str, names: dict[str, str]) -> None:
    """Raises ValueError for a name, by its argument, that Kubernetes refuses for a namespace, a service account or a claim."""
    for argument, value in names.items():
        if not _DNS_LABEL.fullmatch(value):
            raise ValueError(f"{owner}: {argument} is {value!r}; a name has 1 to 63 of a-z, 0-9 and inner -: respell it")
