"""Storage on EKS: buckets and file systems in the cluster's region, each team's folders and identity, volumes for its jobs, work queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from capacity.catalog.node_labels import TEAM_LABEL
from capacity.settings.storage import StorageKind
from capacity.values.names import is_production
from capacity.workloads.requests import SERVICE_ACCOUNT
from components.storage.claimed_volume import CHECKPOINTS, DATASETS
from components.storage.efs_file_system import EfsFileSystem
from components.storage.efs_volume import EfsVolume
from components.storage.lustre_file_system import LustreFileSystem
from components.storage.lustre_volume import LustreVolume
from components.storage.s3_bucket import S3Bucket, bucket_name
from components.storage.s3_mountpoint_volume import S3MountpointVolume
from components.storage.s3_team_access import S3TeamAccess
from components.storage.sqs_work_queue import SqsWorkQueue
from infra.exported import export

if TYPE_CHECKING:
    from pulumi_aws.provider import Provider as AwsProvider
    from pulumi_kubernetes import Provider

    from capacity.plan.model import Plan
    from capacity.settings.platform import EksSettings
    from components.cloud_names import EksPlace
    from components.eks.cluster import EksCluster
    from components.eks.existing_cluster import ExistingEksCluster
    from components.tenancy.team import Team


VOLUME_TYPES = {
    StorageKind.S3: "flexspot:index:S3MountpointVolume",
    StorageKind.EFS: "flexspot:index:EfsVolume",
    StorageKind.LUSTRE: "flexspot:index:LustreVolume",
}


def declare_storage(  # noqa: PLR0913 -- what the cluster and its teams are, each from its own place
    plan: Plan,
    settings: EksSettings,
    place: EksPlace,
    *,
    teams: dict[str, Team],
    cluster: EksCluster | ExistingEksCluster,
    subnets: dict[str, pulumi.Input[str]],
    aws: AwsProvider,
    kubernetes: Provider,
) -> None:
    """Registers buckets and file systems, and for each team its access, volumes and work queue; exports their addresses.

    `subnets` are the private ones by zone.
    """
    on_aws, key = pulumi.ResourceOptions(provider=aws), settings.storage.encryption_key
    names = {purpose: bucket_name(place.account, place.region, settings.environment, purpose) for purpose in (CHECKPOINTS, DATASETS)}
    buckets = {purpose: _bucket(settings, place, purpose, names[purpose], on_aws) for purpose in names}
    efs = {purpose: _efs(settings, place, purpose, cluster, subnets, on_aws) for purpose in settings.storage.in_efs}
    lustre = _lustre(settings, place, buckets[DATASETS], cluster, subnets, on_aws) if settings.storage.has_lustre else None
    queues: dict[str, pulumi.Output[str]] = {}
    checkpoints: dict[str, pulumi.Output[str]] = {}
    grace = max(route.grace_seconds for route in plan.routes)
    for team in sorted(settings.teams, key=lambda each: each.name):
        own_tags = {**place.tags, "team": team.name}
        access = S3TeamAccess(
            f"{team.name}-storage",
            {
                "team": team.name,
                "environment": settings.environment,
                "account": place.account,
                "partition": place.partition,
                "region": place.region,
                "cluster": place.cluster,
                "cluster_name": cluster.cluster_name,
                "namespace": team.name,
                "service_account": SERVICE_ACCOUNT,
                "checkpoint_bucket": names[CHECKPOINTS],
                "dataset_bucket": names[DATASETS],
                "kms_key": key,
                "tags": own_tags,
                "iam_path": place.iam_path,
                "permissions_boundary": place.permissions_boundary,
            },
            on_aws,
        )
        checkpoints[team.name] = access.checkpoint_url
        labels = {**plan.labels, TEAM_LABEL: team.name}
        for purpose, bucket in buckets.items():
            if purpose in efs:
                EfsVolume(
                    f"{team.name}-{purpose}",
                    {
                        "team": team.name,
                        "namespace": team.name,
                        "purpose": purpose,
                        "volume_handle": efs[purpose].volume_handles[team.name],
                        "labels": labels,
                    },
                    _volume_options(StorageKind.EFS, kubernetes, [teams[team.name]]),
                )
                continue
            if purpose == DATASETS and lustre is not None:
                LustreVolume(
                    f"{team.name}-{purpose}",
                    {
                        "team": team.name,
                        "namespace": team.name,
                        "file_system_id": lustre.file_system_id,
                        "dns_name": lustre.dns_name,
                        "mount_name": lustre.mount_name,
                        "labels": labels,
                    },
                    _volume_options(StorageKind.LUSTRE, kubernetes, [teams[team.name]]),
                )
                continue
            S3MountpointVolume(
                f"{team.name}-{purpose}",
                {
                    "team": team.name,
                    "namespace": team.name,
                    "bucket": names[purpose],
                    "region": place.region,
                    "purpose": purpose,
                    "labels": labels,
                },
                _volume_options(StorageKind.S3, kubernetes, [bucket, teams[team.name]]),
            )
        if team.work_queue is not None:
            queue = SqsWorkQueue(
                f"{team.name}.{team.work_queue.name}",
                {
                    # With an underscore, which no name holds: a-b of c and a of b-c stay apart.
                    "queue": f"{settings.environment}_{team.name}_{team.work_queue.name}",
                    "worker_role_name": access.role_name,
                    "account": place.account,
                    "partition": place.partition,
                    "region": place.region,
                    "grace_seconds": grace,
                    "lease_seconds": team.work_queue.lease_seconds,
                    "max_attempts": team.work_queue.max_attempts,
                    "kms_key": key,
                    "tags": own_tags,
                },
                on_aws,
            )
            queues[team.name] = queue.queue_url
    export("buckets", {purpose: bucket.url for purpose, bucket in buckets.items()})
    file_systems = {purpose: each.file_system_id for purpose, each in efs.items()}
    if lustre is not None:
        file_systems[DATASETS] = lustre.file_system_id
    if file_systems:
        export("file_systems", file_systems)
    export("checkpoints", checkpoints)
    export("work_queues", queues)


def _volume_options(kind: StorageKind, kubernetes: Provider, after: list[pulumi.Resource]) -> pulumi.ResourceOptions:
    """A claim keeps its name when its kind changes: known as the same one, the old is deleted before the new is made, not after."""
    others = [pulumi.Alias(type_=token) for other, token in VOLUME_TYPES.items() if other is not kind]
    return pulumi.ResourceOptions(provider=kubernetes, depends_on=after, aliases=others)


def _efs(  # noqa: PLR0913, PLR0917 -- what it stands on, each from its own place
    settings: EksSettings,
    place: EksPlace,
    purpose: str,
    cluster: EksCluster | ExistingEksCluster,
    subnets: dict[str, pulumi.Input[str]],
    on_aws: pulumi.ResourceOptions,
) -> EfsFileSystem:
    wanted = settings.storage.efs
    by_default = purpose == DATASETS or is_production(settings.environment)
    return EfsFileSystem(
        f"{purpose}-efs",
        {
            "cluster": place.cluster,
            "purpose": purpose,
            "teams": [team.name for team in settings.teams],
            "vpc_id": cluster.vpc_id,
            "subnets": subnets,
            "node_security_group_id": cluster.security_group_id,
            "kms_key": settings.storage.encryption_key,
            "infrequent_access_days": wanted.infrequent_access_days,
            "provisioned_mibps": wanted.provisioned_mibps,
            "deletion_protection": by_default if wanted.deletion_protection is None else wanted.deletion_protection,
            "tags": place.tags,
        },
        on_aws,
    )


def _lustre(  # noqa: PLR0913, PLR0917 -- what it stands on, each from its own place
    settings: EksSettings,
    place: EksPlace,
    bucket: S3Bucket,
    cluster: EksCluster | ExistingEksCluster,
    subnets: dict[str, pulumi.Input[str]],
    on_aws: pulumi.ResourceOptions,
) -> LustreFileSystem:
    wanted = settings.storage.lustre
    production = is_production(settings.environment)
    return LustreFileSystem(
        f"{DATASETS}-lustre",
        {
            "cluster": place.cluster,
            "vpc_id": cluster.vpc_id,
            "subnet_id": subnets[wanted.zone or settings.zones[0]],
            "node_security_group_id": cluster.security_group_id,
            "bucket": bucket.name,
            "capacity_gib": wanted.capacity_gib,
            "deployment": wanted.deployment.value,
            "throughput_mbps_per_tib": wanted.throughput_mbps_per_tib,
            "kms_key": settings.storage.encryption_key,
            "deletion_protection": production if wanted.deletion_protection is None else wanted.deletion_protection,
            "tags": place.tags,
        },
        on_aws,
    )


def _bucket(settings: EksSettings, place: EksPlace, purpose: str, name: str, on_aws: pulumi.ResourceOptions) -> S3Bucket:
    return S3Bucket(
        purpose,
        {
            "bucket": name,
            "region": settings.storage.location or place.region,
            "cluster_region": place.region,
            "purpose": purpose,
            "tags": place.tags,
            "retention_days": settings.storage.checkpoint_days if purpose == CHECKPOINTS else None,
            "kms_key": settings.storage.encryption_key,
            "force_destroy": purpose == CHECKPOINTS and not is_production(settings.environment),
        },
        on_aws,
    )
