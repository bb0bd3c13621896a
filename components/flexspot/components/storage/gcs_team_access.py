"""What a team's pods are in Google Cloud, and what they may do with the buckets."""

import hashlib
from typing import NotRequired, TypedDict

import pulumi
from pulumi_gcp import serviceaccount, storage

from flexspot.components.cloud_names import fitted
from flexspot.components.shared_args import publish
from flexspot.components.storage.claimed_volume import SHARED_FOLDER, check_dns_labels, check_setting_names

ACCOUNT_ID_CHARACTERS = 30


class GcsTeamAccessArgs(TypedDict):
    """Arguments of GcsTeamAccess. Neither service accounts nor managed folders have labels: an account's description names the owner."""

    team: str
    """The team's name, which is also the name of its folder in the checkpoint bucket."""

    environment: str
    """The environment's name, which separates the identities of two environments in one project."""

    project: str
    """The project of the cluster and of the identity."""

    namespace: str
    """The team's Kubernetes namespace."""

    service_account: str
    """The Kubernetes service account, in that namespace, whose pods act as the team."""

    checkpoint_bucket: pulumi.Input[str]
    """Bucket in which the team's folder is created."""

    project_number: NotRequired[pulumi.Input[int] | None]
    """The number of `project`. If set, no account is created: the Kubernetes service account itself gets the roles. Default: none."""

    dataset_bucket: NotRequired[pulumi.Input[str] | None]
    """Bucket with datasets. Default: none, the team reads no dataset."""


class GcsTeamAccess(pulumi.ComponentResource):
    """The permissions of a team's pods: read and write the team's checkpoints, read its datasets, and nothing else.

    They act as an IAM service account that is created for the team, or, with `project_number`, as themselves: roles are granted to the
    principal:// identifier of their Kubernetes service account (https://docs.cloud.google.com/iam/docs/principal-identifiers; Google's own
    samples do so for folders and topics, GoogleCloudPlatform/accelerated-platforms; read 2026-11-25). Either way the identity consists of
    project, namespace and name: to Google Cloud, pods with the same names in another cluster of the project are the same.

    Access is granted on managed folders, not by IAM conditions on object names: a listing is checked on the bucket, where a condition on
    `resource.name` does not match an object's name, so such a team could read a checkpoint but not find it. A role on a managed folder
    covers the objects under its path. https://docs.cloud.google.com/storage/docs/managed-folders A listing must then name the folder as its
    prefix; a listing of the whole bucket is refused. GcsFuseVolume mounts accordingly; a mount without its options fails. Written from
    documentation and the sources of gcsfuse, and not tried in a live project.

    The cluster must exist first, with workload identity: pass it in `depends_on`, because its identity pool is created with it. If there is
    a service account, annotate the Kubernetes service account with iam.gke.io/gcp-service-account and `email`.

    Raises ValueError for names that Kubernetes or Google Cloud refuses, and for dataset folders without a dataset bucket.
    """

    member: pulumi.Output[str]
    """Who the team's pods are, as IAM names members: serviceAccount: and an address, or a principal:// identifier."""

    email: pulumi.Output[str] | None
    """The service account's address; None where there is no account."""

    checkpoint_url: pulumi.Output[str]
    """Where the team's checkpoints are: gs://bucket/team/."""

    def __init__(self, name: str, args: GcsTeamAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check(name, args)
        super().__init__("flexspot:index:GcsTeamAccess", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        number = args.get("project_number")
        self.email = _account(name, args, child).email if number is None else None
        self.member = _principal(args, number) if self.email is None else pulumi.Output.concat("serviceAccount:", self.email)
        checkpoints = storage.ManagedFolder(
            f"{name}-checkpoints",
            bucket=args["checkpoint_bucket"],
            name=f"{args['team']}/",
            # A team that goes loses its access; its checkpoints stay until the bucket's retention ends.
            force_destroy=True,
            opts=child,
        )
        storage.ManagedFolderIamMember(
            f"{name}-checkpoints-user",
            bucket=checkpoints.bucket,
            managed_folder=checkpoints.name,
            role="roles/storage.objectUser",
            member=self.member,
            opts=child,
        )
        dataset_bucket = args.get("dataset_bucket")
        if dataset_bucket is not None:
            # The shared folder belongs to the bucket: made here, every team after the first would find it taken.
            storage.ManagedFolderIamMember(
                f"{name}-{SHARED_FOLDER}-viewer",
                bucket=dataset_bucket,
                managed_folder=f"{SHARED_FOLDER}/",
                role="roles/storage.objectViewer",
                member=self.member,
                opts=child,
            )
        self.checkpoint_url = pulumi.Output.concat("gs://", checkpoints.bucket, "/", checkpoints.name)
        publish(self)


def _account(name: str, args: GcsTeamAccessArgs, child: pulumi.ResourceOptions) -> serviceaccount.Account:
    """An account that the pods of the team's Kubernetes service account may act as."""
    account = serviceaccount.Account(
        f"{name}-account",
        account_id=account_id(args["team"], args["environment"]),
        project=args["project"],
        display_name=f"Team {args['team']}, {args['environment']}",
        description=f"Pods of team {args['team']} in namespace {args['namespace']} of {args['environment']}; made by Flexspot.",
        opts=child,
    )
    serviceaccount.IAMMember(
        f"{name}-workload-identity",
        service_account_id=account.name,
        role="roles/iam.workloadIdentityUser",
        member=f"serviceAccount:{args['project']}.svc.id.goog[{args['namespace']}/{args['service_account']}]",
        opts=child,
    )
    return account


def _principal(args: GcsTeamAccessArgs, number: pulumi.Input[int] | None) -> pulumi.Output[str]:
    """The Kubernetes service account, as IAM identifies it."""
    pool = f"{args['project']}.svc.id.goog"
    subject = f"ns/{args['namespace']}/sa/{args['service_account']}"
    return pulumi.Output.format(
        "principal://iam.googleapis.com/projects/{0}/locations/global/workloadIdentityPools/{1}/subject/{2}", number, pool, subject
    )


def account_id(team: str, environment: str) -> str:
    """The id of a team's service account: 6 to 30 characters, another one for every other pair of team and environment.

    An id has hyphens alone to join names with, and names may have hyphens: team a-b of c and team a of b-c. Where one has, a digest of the
    pair keeps them apart.
    """
    joined = f"team-{team}-{environment}"
    if "-" in team or "-" in environment:
        # With a slash, which no name holds.
        joined += f"-{hashlib.sha256(f'{team}/{environment}'.encode()).hexdigest()[:8]}"
    return fitted(joined, ACCOUNT_ID_CHARACTERS)


def _check(name: str, args: GcsTeamAccessArgs) -> None:
    owner = f"GcsTeamAccess {name}"
    check_setting_names(owner, {"team": args["team"], "environment": args["environment"]})
    check_dns_labels(owner, {"namespace": args["namespace"], "service_account": args["service_account"]})
