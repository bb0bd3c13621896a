"""Storage on EKS: buckets and file systems in the cluster's region, each team's folders and identity, volumes for its jobs, work queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from flexspot.capacity.catalog.node_labels import TEAM_LABEL
from flexspot.capacity.settings.storage import StorageKind
from flexspot.capacity.values.names import is_production
from flexspot.capacity.workloads.requests import SERVICE_ACCOUNT
from flexspot.components.shared_args import arguments
from flexspot.components.storage.claimed_volume import CHECKPOINTS, DATASETS
from flexspot.components.storage.efs import EfsFileSystem, EfsFileSystemArgs, EfsVolume, EfsVolumeArgs
from flexspot.components.storage.lustre import LustreFileSystem, LustreFileSystemArgs, LustreVolume, LustreVolumeArgs
from flexspot.components.storage.s3_bucket import S3Bucket, S3BucketArgs, S3MountpointVolume, S3MountpointVolumeArgs, bucket_name
from flexspot.components.storage.s3_team_access import S3TeamAccess, S3TeamAccessArgs
from flexspot.components.storage.sqs_work_queue import SqsWorkQueue, SqsWorkQueueArgs
from flexspot.infra.declaring.platform_objects import after

if TYPE_CHECKING:
    from flexspot.components.tenancy.team import Team
    from flexspot.infra.declaring.eks_controllers import EksStack
    from flexspot.infra.declaring.platform_objects import Outputs


VOLUME_TYPES = {
    StorageKind.S3: "flexspot:index:S3MountpointVolume",
    StorageKind.EFS: "flexspot:index:EfsVolume",
    StorageKind.LUSTRE: "flexspot:index:LustreVolume",
}


def declare_storage(stack: EksStack, teams: dict[str, Team]) -> Outputs:
    """Register buckets and file systems, and for each team its access, volumes and work queue. Return their addresses."""
    plan, settings, place = stack.plan, stack.settings, stack.place
    on_aws, key = stack.on_aws, settings.storage.encryption_key
    names = {purpose: bucket_name(place.account, place.region, settings.environment, purpose) for purpose in (CHECKPOINTS, DATASETS)}
    buckets = {purpose: _bucket(stack, purpose, names[purpose]) for purpose in names}
    efs = {purpose: _efs(stack, purpose) for purpose in settings.storage.in_efs}
    lustre = _lustre(stack, buckets[DATASETS]) if settings.storage.has_lustre else None
    queues: dict[str, pulumi.Output[str]] = {}
    checkpoints: dict[str, pulumi.Output[str]] = {}
    grace = max(route.grace_seconds for route in plan.routes)
    for team in sorted(settings.teams, key=lambda each: each.name):
        own_tags = {**place.tags, "team": team.name}
        own = {"team": team.name, "namespace": team.name, "labels": {**plan.labels, TEAM_LABEL: team.name}, "tags": own_tags}
        identity = arguments(
            S3TeamAccessArgs,
            own,
            place,
            settings,
            cluster_name=stack.cluster.cluster_name,
            service_account=SERVICE_ACCOUNT,
            checkpoint_bucket=names[CHECKPOINTS],
            dataset_bucket=names[DATASETS],
            kms_key=key,
        )
        access = S3TeamAccess(f"{team.name}-storage", identity, on_aws)
        checkpoints[team.name] = access.checkpoint_url
        for purpose, bucket in buckets.items():
            called, namespace = f"{team.name}-{purpose}", teams[team.name]
            if purpose in efs:
                handle = efs[purpose].volume_handles[team.name]
                args = arguments(EfsVolumeArgs, own, purpose=purpose, volume_handle=handle)
                EfsVolume(called, args, _volume_options(stack, StorageKind.EFS, namespace))
            elif purpose == DATASETS and lustre is not None:
                LustreVolume(called, arguments(LustreVolumeArgs, own, lustre), _volume_options(stack, StorageKind.LUSTRE, namespace))
            else:
                args = arguments(S3MountpointVolumeArgs, own, place, bucket=names[purpose], purpose=purpose)
                S3MountpointVolume(called, args, _volume_options(stack, StorageKind.S3, bucket, namespace))
        if team.work_queue is not None:
            work = arguments(
                SqsWorkQueueArgs,
                team.work_queue,
                place,
                # Names do not contain an underscore, so the queue a-b of team c and the queue a of team b-c have different names.
                queue=f"{settings.environment}_{team.name}_{team.work_queue.name}",
                worker_role_name=access.role_name,
                grace_seconds=grace,
                kms_key=key,
                tags=own_tags,
            )
            queue = SqsWorkQueue(f"{team.name}.{team.work_queue.name}", work, on_aws)
            queues[team.name] = queue.queue_url
    file_systems = {purpose: each.file_system_id for purpose, each in efs.items()}
    if lustre is not None:
        file_systems[DATASETS] = lustre.file_system_id
    return {
        "buckets": {purpose: bucket.url for purpose, bucket in buckets.items()},
        **({"file_systems": file_systems} if file_systems else {}),
        "checkpoints": checkpoints,
        "work_queues": queues,
    }


def _volume_options(stack: EksStack, kind: StorageKind, *first: pulumi.Resource) -> pulumi.ResourceOptions:
    """Return options of a volume with aliases for the other kinds.

    A claim keeps its name when its kind changes. With the alias, the old claim is deleted before the new one is created.
    """
    others = [pulumi.Alias(type_=token) for other, token in VOLUME_TYPES.items() if other is not kind]
    return pulumi.ResourceOptions.merge(after(stack.on_cluster, *first), pulumi.ResourceOptions(aliases=others))


def _efs(stack: EksStack, purpose: str) -> EfsFileSystem:
    settings, wanted = stack.settings, stack.settings.storage.efs
    by_default = purpose == DATASETS or is_production(settings.environment)
    args = arguments(
        EfsFileSystemArgs,
        wanted,
        stack.place,
        purpose=purpose,
        teams=[team.name for team in settings.teams],
        vpc_id=stack.cluster.vpc_id,
        subnets=stack.subnets,
        node_security_group_id=stack.cluster.security_group_id,
        kms_key=settings.storage.encryption_key,
        deletion_protection=by_default if wanted.deletion_protection is None else wanted.deletion_protection,
    )
    return EfsFileSystem(f"{purpose}-efs", args, stack.on_aws)


def _lustre(stack: EksStack, bucket: S3Bucket) -> LustreFileSystem:
    settings, wanted = stack.settings, stack.settings.storage.lustre
    args = arguments(
        LustreFileSystemArgs,
        wanted,
        stack.place,
        vpc_id=stack.cluster.vpc_id,
        subnet_id=stack.subnets[wanted.zone or settings.zones[0]],
        node_security_group_id=stack.cluster.security_group_id,
        bucket=bucket.name,
        kms_key=settings.storage.encryption_key,
        deletion_protection=is_production(settings.environment) if wanted.deletion_protection is None else wanted.deletion_protection,
    )
    return LustreFileSystem(f"{DATASETS}-lustre", args, stack.on_aws)


def _bucket(stack: EksStack, purpose: str, name: str) -> S3Bucket:
    settings, place = stack.settings, stack.place
    args = arguments(
        S3BucketArgs,
        place,
        bucket=name,
        region=settings.storage.location or place.region,
        cluster_region=place.region,
        purpose=purpose,
        retention_days=settings.storage.checkpoint_days if purpose == CHECKPOINTS else None,
        kms_key=settings.storage.encryption_key,
        force_destroy=purpose == CHECKPOINTS and not is_production(settings.environment),
    )
    return S3Bucket(purpose, args, stack.on_aws)
