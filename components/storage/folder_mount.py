"""Which folder of a bucket a namespace mounts, and as whom; the same in every cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired, TypedDict

from components.storage.purposes import DATASETS, SHARED_FOLDER, check_folder, check_purpose
from components.storage.team_names import check_dns_labels

_USUAL_ID = 1000


class FolderMountArgs(TypedDict):
    """What the arguments of every volume component have, as their own documentation says."""

    team: str
    namespace: str
    purpose: str
    folder: NotRequired[str | None]
    claim: NotRequired[str | None]
    run_as_user: NotRequired[int | None]
    run_as_group: NotRequired[int | None]
    file_cache_gib: NotRequired[int | None]


@dataclass(frozen=True)
class FolderMount:
    """The arguments with their defaults."""

    read_only: bool
    folder: str
    claim: str
    user: int
    group: int
    file_cache_gib: int


def resolve_folder_mount(owner: str, args: FolderMountArgs) -> FolderMount:
    """The mount that the arguments ask for.

    Raises ValueError for names that Kubernetes refuses, an unknown purpose, a folder that is no relative path, root as user or group, and a
    negative cache.
    """
    check_purpose(owner, args["purpose"])
    read_only = args["purpose"] == DATASETS
    mount = FolderMount(
        read_only=read_only,
        folder=args.get("folder") or (SHARED_FOLDER if read_only else args["team"]),
        claim=args.get("claim") or args["purpose"],
        user=_USUAL_ID if (user := args.get("run_as_user")) is None else user,
        group=_USUAL_ID if (group := args.get("run_as_group")) is None else group,
        file_cache_gib=args.get("file_cache_gib") or 0,
    )
    check_dns_labels(owner, {"team": args["team"], "namespace": args["namespace"], "claim": mount.claim})
    check_folder(owner, "folder", mount.folder)
    for argument, value in {"run_as_user": mount.user, "run_as_group": mount.group}.items():
        if value < 1:
            raise ValueError(f"{owner}: {argument} is {value}; restricted Pod Security refuses root: give the pods' id, at least 1")
    if mount.file_cache_gib < 0:
        raise ValueError(f"{owner}: file_cache_gib is {mount.file_cache_gib}; give 0 for no cache, or a size in GiB")
    return mount
