"""Ids of resources as the providers know them: from the program's inputs, or by asking AWS what an interrupted run created."""

from __future__ import annotations

import string
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, Source, read_records

if TYPE_CHECKING:
    from collections.abc import Mapping


DATA = Path(__file__).with_name("resource_ids.yaml")

KUBERNETES = "kubernetes:"
"""Prefix of the type tokens of Kubernetes objects."""

HELM_RELEASE = "kubernetes:helm.sh/v3:Release"


class _IdFile(Record):
    source: Source
    ids: dict[str, str] = Field(min_length=1)


def resource_id(token: str, inputs: Mapping[str, Any], place: Mapping[str, str]) -> str | None:
    """Return the id of a resource of the type `token`. None if the cloud generates it, or an input in it is not known.

    `place` contains the values of the whole stack: `account`, `partition`, `region`, `dns_suffix` of AWS, nothing for others.
    """
    if token == HELM_RELEASE:
        return _joined(inputs.get("namespace"), inputs.get("name"))
    if token.startswith(KUBERNETES):
        metadata: dict[str, Any] = inputs.get("metadata") or {}
        return _joined(metadata.get("namespace"), metadata.get("name"))
    form = resource_ids().get(token)
    if form is None:
        return None
    known = {**place, **{key: value for key, value in inputs.items() if isinstance(value, str)}}
    if "project" in known:
        known["project_host"] = _host(known["project"])
    needed = {name for _, name, _, _ in string.Formatter().parse(form) if name}
    return form.format_map(known) if needed <= known.keys() else None


@cache
def resource_ids() -> dict[str, str]:
    """Return the formats of ids, by type token."""
    return read_records(DATA, _IdFile).ids


def _joined(namespace: object, name: object) -> str | None:
    """Return the id of a Kubernetes object: `namespace/name`, or `name` for an object without a namespace."""
    if not isinstance(name, str) or not name:
        return None
    return f"{namespace}/{name}" if isinstance(namespace, str) and namespace else name


def _host(project: str) -> str:
    """Return the project as in the addresses of its service accounts: acme.com:ai becomes ai.acme.com."""
    domain, _, name = project.rpartition(":")
    return f"{name}.{domain}" if domain else name


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Inputs = Mapping[str, Any]
    Clients = Callable[[str], Any]


@dataclass(frozen=True)
class Listing:
    """One EC2 operation that lists resources of a type by their tags."""

    operation: str
    found: str
    identity: str
    gone: frozenset[str] = frozenset()
    """States of resources that are still listed for a while after their deletion."""


TAGGED = {
    "aws:ec2/eip:Eip": Listing("describe_addresses", "Addresses", "AllocationId"),
    "aws:ec2/internetGateway:InternetGateway": Listing("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    "aws:ec2/launchTemplate:LaunchTemplate": Listing("describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
    "aws:ec2/natGateway:NatGateway": Listing(
        "describe_nat_gateways", "NatGateways", "NatGatewayId", frozenset({"deleting", "deleted", "failed"})
    ),
    "aws:ec2/routeTable:RouteTable": Listing("describe_route_tables", "RouteTables", "RouteTableId"),
    "aws:ec2/securityGroup:SecurityGroup": Listing("describe_security_groups", "SecurityGroups", "GroupId"),
    "aws:ec2/subnet:Subnet": Listing("describe_subnets", "Subnets", "SubnetId"),
    "aws:ec2/vpc:Vpc": Listing("describe_vpcs", "Vpcs", "VpcId"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": Listing(
        "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId", frozenset({"deleting", "deleted", "failed", "expired", "rejected"})
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": Listing(
        "describe_security_group_rules", "SecurityGroupRules", "SecurityGroupRuleId"
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": Listing(
        "describe_security_group_rules", "SecurityGroupRules", "SecurityGroupRuleId"
    ),
}
"""EC2 operations by type token. The provider writes tags in the call that creates a resource, so each created resource has them."""


_SEARCH_INPUTS: dict[str, tuple[str, ...]] = {
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": ("vpcId",),
    "aws:ec2/route:Route": ("routeTableId", "destinationCidrBlock"),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": ("subnetId",),
    "aws:efs/accessPoint:AccessPoint": ("fileSystemId",),
    "aws:efs/fileSystem:FileSystem": (),
    "aws:efs/mountTarget:MountTarget": ("fileSystemId", "subnetId"),
    "aws:eks/nodeGroup:NodeGroup": ("clusterName",),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": ("clusterName", "namespace", "serviceAccount"),
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": ("fileSystemId",),
    "aws:fsx/lustreFileSystem:LustreFileSystem": (),
    "aws:kms/key:Key": (),
}
"""Inputs that a search for a resource without tags needs, by type token."""


class AwsSearch:
    """Searches AWS for resources.

    `clients` creates a boto3 client of a service, such as `functools.partial(boto3.client, region_name=...)`.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    @property
    def types(self) -> frozenset[str]:
        """Type tokens that the search supports."""
        return frozenset({*TAGGED, *self._others})

    def ids(self, token: str, inputs: Inputs) -> list[str] | None:
        """Return the ids of all resources that these inputs may have become.

        None if the type is not supported or the inputs are incomplete.

        Raises boto3's errors when AWS does not answer.
        """
        if token in TAGGED:
            return self._tagged(TAGGED[token], inputs)
        other = self._others.get(token)
        # An input that the search needs may be a secret or not known yet.
        if other is None or not all(isinstance(inputs.get(each), str) for each in _SEARCH_INPUTS[token]):
            return None
        return list(other(inputs))

    @property
    def _others(self) -> dict[str, Callable[[Inputs], Iterable[str]]]:
        return {
            "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": self._default_security_group,
            "aws:ec2/route:Route": self._route,
            "aws:ec2/routeTableAssociation:RouteTableAssociation": self._association,
            "aws:efs/accessPoint:AccessPoint": self._access_point,
            "aws:efs/fileSystem:FileSystem": self._file_system,
            "aws:efs/mountTarget:MountTarget": self._mount_target,
            "aws:eks/nodeGroup:NodeGroup": self._node_group,
            "aws:eks/podIdentityAssociation:PodIdentityAssociation": self._pod_identity,
            "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": self._data_repository_association,
            "aws:fsx/lustreFileSystem:LustreFileSystem": self._lustre_file_system,
            "aws:kms/key:Key": self._key,
        }

    def _tagged(self, listing: Listing, inputs: Inputs) -> list[str] | None:
        filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in _tags(inputs).items()]
        if not filters:
            return None
        ec2 = self._clients("ec2")
        pages = ec2.can_paginate(listing.operation)
        answers = ec2.get_paginator(listing.operation).paginate(Filters=filters) if pages else [_asked(ec2, listing.operation, filters)]
        found: list[dict[str, Any]] = [each for answer in answers for each in answer[listing.found]]
        return [each[listing.identity] for each in found if str(each.get("State", "")).lower() not in listing.gone]

    def _default_security_group(self, inputs: Inputs) -> Iterable[str]:
        filters = [{"Name": "vpc-id", "Values": [inputs["vpcId"]]}, {"Name": "group-name", "Values": ["default"]}]
        return [each["GroupId"] for each in self._clients("ec2").describe_security_groups(Filters=filters)["SecurityGroups"]]

    def _route(self, inputs: Inputs) -> Iterable[str]:
        table, wanted = inputs["routeTableId"], inputs["destinationCidrBlock"]
        tables = self._clients("ec2").describe_route_tables(Filters=[{"Name": "route-table-id", "Values": [table]}])["RouteTables"]
        routes = [each for found in tables for each in found["Routes"] if each.get("DestinationCidrBlock") == wanted]
        # The provider's own id: createRouteID in internal/service/ec2/vpc_route.go of hashicorp/aws.
        return [f"r-{table}{zlib.crc32(wanted.encode())}" for _ in routes]

    def _association(self, inputs: Inputs) -> Iterable[str]:
        subnet = inputs["subnetId"]
        tables = self._clients("ec2").describe_route_tables(Filters=[{"Name": "association.subnet-id", "Values": [subnet]}])["RouteTables"]
        return [each["RouteTableAssociationId"] for found in tables for each in found["Associations"] if each.get("SubnetId") == subnet]

    def _file_system(self, inputs: Inputs) -> Iterable[str]:
        listed = self._named("efs", "describe_file_systems", "FileSystems")
        return [each["FileSystemId"] for each in _with_tags(listed, inputs)]

    def _access_point(self, inputs: Inputs) -> Iterable[str]:
        listed = self._named("efs", "describe_access_points", "AccessPoints", FileSystemId=inputs["fileSystemId"])
        return [each["AccessPointId"] for each in _with_tags(listed, inputs)]

    def _mount_target(self, inputs: Inputs) -> Iterable[str]:
        listed = self._named("efs", "describe_mount_targets", "MountTargets", FileSystemId=inputs["fileSystemId"])
        return [
            each["MountTargetId"] for each in listed if each["SubnetId"] == inputs["subnetId"] and each["LifeCycleState"] not in _DELETED
        ]

    def _lustre_file_system(self, inputs: Inputs) -> Iterable[str]:
        listed = self._named("fsx", "describe_file_systems", "FileSystems")
        return [each["FileSystemId"] for each in _with_tags(listed, inputs, state="Lifecycle")]

    def _data_repository_association(self, inputs: Inputs) -> Iterable[str]:
        one = [{"Name": "file-system-id", "Values": [inputs["fileSystemId"]]}]
        listed = self._named("fsx", "describe_data_repository_associations", "Associations", Filters=one)
        return [each["AssociationId"] for each in _with_tags(listed, inputs, state="Lifecycle")]

    def _node_group(self, inputs: Inputs) -> Iterable[str]:
        cluster = inputs["clusterName"]
        own, prefix = inputs.get("nodeGroupName"), inputs.get("nodeGroupNamePrefix", "")
        names = self._named("eks", "list_nodegroups", "nodegroups", clusterName=cluster)
        return [f"{cluster}:{name}" for name in names if name == own or (own is None and name.startswith(prefix))]

    def _pod_identity(self, inputs: Inputs) -> Iterable[str]:
        place = {"clusterName": inputs["clusterName"], "namespace": inputs["namespace"], "serviceAccount": inputs["serviceAccount"]}
        return [each["associationId"] for each in self._named("eks", "list_pod_identity_associations", "associations", **place)]

    def _key(self, inputs: Inputs) -> Iterable[str]:
        filters = [{"Key": key, "Values": [value]} for key, value in _tags(inputs).items()]
        listed = self._named(
            "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=filters, ResourceTypeFilters=["kms:key"]
        )
        keys = self._clients("kms")
        found = [each["ResourceARN"].rpartition("/")[2] for each in listed]
        return [each for each in found if keys.describe_key(KeyId=each)["KeyMetadata"]["KeyState"] != "PendingDeletion"]

    def _named(self, service: str, operation: str, found: str, **arguments: object) -> list[Any]:
        """Return all items that an operation lists. A cluster that does not exist has none."""
        client = self._clients(service)
        try:
            # An operation without a paginator lists its items in one answer, such as the associations of one file system (8 at most).
            paged = client.can_paginate(operation)
            pages = client.get_paginator(operation).paginate(**arguments) if paged else [getattr(client, operation)(**arguments)]
            return [each for page in pages for each in page[found]]
        except client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in {"ResourceNotFoundException", "NotFoundException", "FileSystemNotFound"}:
                return []
            raise


def _asked(client: Any, operation: str, filters: list[dict[str, Any]]) -> dict[str, Any]:
    answer: dict[str, Any] = getattr(client, operation)(Filters=filters)
    return answer


_DELETED = frozenset({"deleting", "deleted"})
"""States of EFS and FSx resources that are being deleted or are deleted."""


def _with_tags(listed: Iterable[Mapping[str, Any]], inputs: Inputs, state: str = "LifeCycleState") -> list[Mapping[str, Any]]:
    """Return items with all tags of the inputs, without those being deleted.

    Return none if the inputs have no tags, which would match everything.
    """
    wanted = _tags(inputs).items()
    there = [each for each in listed if str(each.get(state, "")).lower() not in _DELETED]
    found = [(each, {tag["Key"]: tag["Value"] for tag in each.get("Tags", [])}) for each in there]
    return [each for each, tags in found if wanted and wanted <= tags.items()]


def _tags(inputs: Inputs) -> dict[str, str]:
    tags: dict[str, Any] = inputs.get("tags") or {}
    return {key: value for key, value in tags.items() if isinstance(value, str)}
