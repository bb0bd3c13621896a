"""Storage on GKE: buckets, teams' access to folders, volumes, topics and subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.node_labels import TEAM_LABEL
from flexspot.capacity.settings.cluster import TeamIdentity
from flexspot.capacity.values.names import is_production
from flexspot.capacity.workloads.requests import SERVICE_ACCOUNT
from flexspot.components.shared_args import arguments
from flexspot.components.storage.claimed_volume import CHECKPOINTS, DATASETS
from flexspot.components.storage.gcs_bucket import (
    GcsBucket,
    GcsBucketArgs,
    GcsFuseVolume,
    GcsTeamAccess,
    GcsTeamAccessArgs,
    account_id,
    bucket_name,
)
from flexspot.components.storage.pubsub_work_queue import PubsubWorkQueue, PubsubWorkQueueArgs
from flexspot.infra.declaring.platform_objects import after

if TYPE_CHECKING:
    import pulumi

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.settings.platform import GkeSettings
    from flexspot.components.gke.cluster import GkeCluster
    from flexspot.components.gke.existing_cluster import ExistingGkeCluster
    from flexspot.components.tenancy.team import Team
    from flexspot.infra.declaring.platform_objects import Outputs


def workload_annotations(settings: GkeSettings) -> dict[str, dict[str, str]]:
    """Return the annotations that link each team's service account in Kubernetes to that of GcsTeamAccess in Google Cloud, by team.

    They contain the account's id, which is known in advance. So a namespace does not wait for an identity, and a pod that starts before its
    identity exists has none yet. In addresses, the project acme.com:ai of a domain becomes ai.acme.com
    (https://docs.cloud.google.com/iam/docs/service-account-types). With the identity `direct` there is no such account, and nothing is
    annotated.
    """
    if settings.cluster.team_identity is TeamIdentity.DIRECT:
        return {}
    domain, _, project = settings.project.rpartition(":")
    place = f"{project}.{domain}" if domain else project
    return {
        team.name: {"iam.gke.io/gcp-service-account": f"{account_id(team.name, settings.environment)}@{place}.iam.gserviceaccount.com"}
        for team in settings.teams
    }


def declare_storage(  # noqa: PLR0913 -- what the cluster and its teams are, each from its own place
    plan: Plan,
    settings: GkeSettings,
    labels: dict[str, str],
    *,
    teams: dict[str, Team],
    within: pulumi.ResourceOptions,
    on_cluster: pulumi.ResourceOptions,
    cluster: GkeCluster | ExistingGkeCluster,
) -> Outputs:
    """Register the buckets, and for each team its access, volumes and work queue. Return their addresses."""
    buckets = {purpose: _bucket(settings, labels, purpose, within) for purpose in (CHECKPOINTS, DATASETS)}
    subscriptions: dict[str, pulumi.Output[str]] = {}
    checkpoints: dict[str, pulumi.Output[str]] = {}
    grace = max(route.grace_seconds for route in plan.routes)
    direct = settings.cluster.team_identity is TeamIdentity.DIRECT
    for team in sorted(settings.teams, key=lambda each: each.name):
        own_labels = {**labels, "team": team.name}
        identity = arguments(
            GcsTeamAccessArgs,
            settings,
            team=team.name,
            namespace=team.name,
            service_account=SERVICE_ACCOUNT,
            # The provider reads it from a bucket, so no permission to read the project itself is needed.
            project_number=buckets[CHECKPOINTS].project_number if direct else None,
            checkpoint_bucket=buckets[CHECKPOINTS].name,
            dataset_bucket=buckets[DATASETS].name,
        )
        # The identity pool that it is bound to is created with the cluster.
        access = GcsTeamAccess(f"{team.name}-storage", identity, after(within, cluster))
        checkpoints[team.name] = access.checkpoint_url
        for purpose, bucket in buckets.items():
            GcsFuseVolume(
                f"{team.name}-{purpose}",
                {
                    "team": team.name,
                    "namespace": team.name,
                    "bucket": bucket.name,
                    "purpose": purpose,
                    "labels": {**plan.labels, TEAM_LABEL: team.name},
                },
                after(on_cluster, teams[team.name]),
            )
        if team.work_queue is not None:
            work = arguments(
                PubsubWorkQueueArgs,
                settings,
                # Names do not contain a dot, so the queue a-b of team c and the queue a of team b-c have different names.
                queue=f"{settings.environment}.{team.name}.{team.work_queue.name}",
                worker_member=access.member,
                grace_seconds=grace,
                labels=own_labels,
                kms_key=settings.storage.encryption_key,
                ack_deadline_seconds=team.work_queue.lease_seconds,
                max_delivery_attempts=team.work_queue.max_attempts,
            )
            queue = PubsubWorkQueue(f"{team.name}.{team.work_queue.name}", work, within)
            subscriptions[team.name] = queue.subscription
    return {
        "buckets": {purpose: bucket.url for purpose, bucket in buckets.items()},
        "checkpoints": checkpoints,
        "subscriptions": subscriptions,
    }


def _bucket(settings: GkeSettings, labels: dict[str, str], purpose: str, within: pulumi.ResourceOptions) -> GcsBucket:
    args = arguments(
        GcsBucketArgs,
        settings,
        bucket=bucket_name(settings.project, settings.environment, purpose),
        location=settings.storage.location or settings.region,
        cluster_region=settings.region,
        purpose=purpose,
        labels=labels,
        retention_days=settings.storage.checkpoint_days if purpose == CHECKPOINTS else None,
        kms_key=settings.storage.encryption_key,
        force_destroy=purpose == CHECKPOINTS and not is_production(settings.environment),
    )
    return GcsBucket(purpose, args, within)
