"""Refusals by the clouds of what a provider's own validation accepts: references that are missing, names taken, resources in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloud_resources import filled, kinds

from flexspot.infra.deployment.api_refusals import refused_changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cloud_folder import CloudFolder, Held
    from cloud_resources import Reference, ResourceKind

GKE_CLUSTER = "gcp:container/cluster:Cluster"
EKS_CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
ADDON = "aws:eks/addon:Addon"
_ACCOUNT = "gcp:serviceaccount/account:Account"
_GATEWAY = "aws:ec2/internetGateway:InternetGateway"
_NAT = "aws:ec2/natGateway:NatGateway"
_SUBNET = "aws:ec2/subnet:Subnet"

_NAMES = ("id", "name", "selfLink", "arn", "email", "url", "topicId")
"""Attributes by which other resources may refer to a resource."""

_OTHERS = ("arn:aws:iam::aws:", "arn:aws-us-gov:iam::aws:", "arn:aws-cn:iam::aws:")
"""Prefixes of references to AWS's own resources."""

NEEDS_NODES = {"coredns", "aws-ebs-csi-driver", "aws-mountpoint-s3-csi-driver"}
"""Add-ons that EKS reports as DEGRADED while there is no node for their Deployments."""


class CloudRefusalError(Exception):
    """Raised when the cloud refuses; the text has the cloud's form."""


def refuse_create(cloud: CloudFolder, kind: ResourceKind, known: Mapping[str, Any], inputs: dict[str, Any]) -> None:
    """Raise CloudRefusalError for a resource that refers to a missing one, or whose name is taken."""
    _require_referred(cloud, kind, inputs)
    _require_more(cloud, kind.token, inputs)
    if kind.put:
        return
    identity = str(known["id"])
    taken = cloud.get(kind.token, identity) is not None
    taken = taken or (bool(kind.once) and any(_same(held.inputs, inputs, kind.once) for held in cloud.of(kind.token)))
    named = kind.form is None and not kind.once and isinstance(inputs.get("name"), str)
    taken = taken or (named and any(held.inputs.get("name") == inputs["name"] for held in cloud.of(kind.token)))
    if taken:
        raise CloudRefusalError(filled(kind.taken, known))


def refuse_update(cloud: CloudFolder, kind: ResourceKind, old: dict[str, Any], inputs: dict[str, Any]) -> None:
    """Raise CloudRefusalError for a change that refers to a missing resource, or that only the API refuses."""
    _require_referred(cloud, kind, inputs)
    for _, text in refused_changes(kind.token, old, inputs, lambda subnet: _zone_of(cloud, subnet)):
        raise CloudRefusalError(text)


def refuse_delete(cloud: CloudFolder, held: Held) -> None:
    """Raise CloudRefusalError for a protected resource, or one that another resource still needs."""
    if held.token == GKE_CLUSTER and held.inputs.get("deletionProtection", True):
        raise CloudRefusalError(
            "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed with cluster deletion."
        )
    if held.token == EKS_CLUSTER and held.inputs.get("deletionProtection"):
        raise CloudRefusalError(f"InvalidRequestException: Cluster {held.identity} has deletion protection enabled.")
    if held.token.endswith("Bucket:Bucket") or held.token.endswith("bucket:Bucket"):
        _refuse_bucket(cloud, held)
    if held.token == _GATEWAY:
        _refuse_gateway(cloud, held)
    for holder in holders(cloud, held):
        raise CloudRefusalError(_still_used(held, holder))


def holders(cloud: CloudFolder, held: Held) -> Iterator[Held]:
    """Return the resources that keep `held` from being deleted."""
    for kind in kinds().values():
        references = [each for each in kind.references if each.holds and held.token in each.tokens]
        for other in cloud.of(kind.token) if references else []:
            if any(value in _names(held) for each in references for value in each.values(other.inputs)):
                yield other


def _require_referred(cloud: CloudFolder, kind: ResourceKind, inputs: dict[str, Any]) -> None:
    for reference in kind.references:
        there: set[str] = {name for token in reference.tokens for held in cloud.of(token) for name in _names(held)}
        for value in reference.values(inputs):
            if value not in there and not value.startswith(_OTHERS):
                raise CloudRefusalError(_not_found(kind, reference, value))


def _require_more(cloud: CloudFolder, token: str, inputs: dict[str, Any]) -> None:
    """Check requirements for other resources than those that the inputs name."""
    member = inputs.get("member")
    if isinstance(member, str) and token.startswith("gcp:"):
        _require_member(cloud, member)
    if token == _NAT and not any(held.inputs["vpcId"] == _vpc_of(cloud, inputs["subnetId"]) for held in cloud.of(_GATEWAY)):
        raise CloudRefusalError("Gateway.NotAttached: Network has no Internet gateway attached")
    if token == NODE_GROUP and not _of_cluster(cloud, ADDON, inputs["clusterName"], "addonName", {"vpc-cni"}):
        raise CloudRefusalError("NodeCreationFailure: Unhealthy nodes in the kubernetes cluster: container runtime network not ready")
    if token == ADDON and inputs["addonName"] in NEEDS_NODES and not _of_cluster(cloud, NODE_GROUP, inputs["clusterName"]):
        raise CloudRefusalError(f"unexpected state 'DEGRADED', wanted target 'ACTIVE': add-on {inputs['addonName']} has no node to run on")


def _require_member(cloud: CloudFolder, member: str) -> None:
    kind, _, who = member.partition(":")
    if kind == "serviceAccount" and who.endswith(".iam.gserviceaccount.com"):
        if who not in {held.outputs["email"] for held in cloud.of(_ACCOUNT)}:
            raise CloudRefusalError(f"googleapi: Error 400: Service account {who} does not exist., badRequest")
    elif ".svc.id.goog[" in who:
        pool = who.partition("[")[0]
        settings: list[dict[str, Any]] = [held.inputs.get("workloadIdentityConfig") or {} for held in cloud.of(GKE_CLUSTER)]
        if pool not in {each.get("workloadPool") for each in settings}:
            raise CloudRefusalError(
                f"googleapi: Error 400: Identity Pool does not exist ({pool}). Please check that you specified a valid one."
            )


def _refuse_bucket(cloud: CloudFolder, held: Held) -> None:
    objects = cloud.settings.get("objects", {}).get(held.identity, 0)
    if objects and not held.inputs.get("forceDestroy"):
        if held.token.startswith("gcp:"):
            # Google's provider checks this before it calls the API.
            raise CloudRefusalError(f"Error trying to delete bucket {held.identity} containing objects without `force_destroy` set to true")
        answer = "operation error S3: DeleteBucket, https response error StatusCode: 409, api error BucketNotEmpty"
        raise CloudRefusalError(f"deleting S3 Bucket ({held.identity}): {answer}: The bucket you tried to delete is not empty.")


def _refuse_gateway(cloud: CloudFolder, held: Held) -> None:
    """Refuse to delete a gateway while addresses of its network are mapped through it."""
    if any(_vpc_of(cloud, each.inputs["subnetId"]) == held.inputs["vpcId"] for each in cloud.of(_NAT)):
        raise CloudRefusalError(f"DependencyViolation: Network {held.inputs['vpcId']} has some mapped public address(es).")


def _of_cluster(cloud: CloudFolder, token: str, cluster: str, key: str = "", values: set[str] | None = None) -> bool:
    return any(held.inputs["clusterName"] == cluster and (not values or held.inputs.get(key) in values) for held in cloud.of(token))


def _vpc_of(cloud: CloudFolder, subnet: str) -> str:
    found = cloud.get(_SUBNET, subnet)
    return "" if found is None else str(found.inputs["vpcId"])


def _zone_of(cloud: CloudFolder, subnet: str) -> str:
    found = cloud.get(_SUBNET, subnet)
    return "" if found is None else str(found.inputs.get("availabilityZone") or found.inputs.get("availabilityZoneId"))


def _names(held: Held) -> set[str]:
    own = {held.identity, *(value for key in _NAMES if isinstance(value := held.outputs.get(key), str))}
    # The security group that EKS creates for a cluster can be tagged as well.
    network: dict[str, Any] = held.outputs.get("vpcConfig") or {}
    return own | {network["clusterSecurityGroupId"]} if "clusterSecurityGroupId" in network else own


def _same(one: dict[str, Any], other: dict[str, Any], keys: tuple[str, ...]) -> bool:
    return all(one.get(key) == other.get(key) for key in keys)


def _not_found(kind: ResourceKind, reference: Reference, value: str) -> str:
    what = " or ".join(token.rpartition(":")[2] for token in reference.tokens)
    if kind.token.startswith("gcp:"):
        return f"googleapi: Error 404: The resource '{value}' was not found ({what}, {reference.path})., notFound"
    return f"Invalid{what}ID.NotFound: {reference.path}: The {what} '{value}' does not exist"


def _still_used(held: Held, holder: Held) -> str:
    if held.token.startswith("gcp:"):
        return (
            f"googleapi: Error 400: The {held.token.rpartition(':')[2]} resource '{held.identity}' is already being used by "
            f"'{holder.identity}', resourceInUseByAnotherResource"
        )
    if held.token.startswith("aws:iam/"):
        return f"DeleteConflict: Cannot delete entity, must detach or delete {holder.identity} first."
    if held.token == EKS_CLUSTER:
        return f"ResourceInUseException: Cluster has nodegroups attached ({holder.identity})"
    return f"DependencyViolation: resource {held.identity} has a dependent object ({holder.identity})"
