"""The stand-in clouds as the engine meets them: what they make, answer, keep and refuse."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from cloud_folder import CREATING, DELETING, CloudFolder, Held
from cloud_provider import CloudProvider
from cloud_resources import kinds
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from infra.deployment.cloud_run import PLUGINS
from lab.providers.serving import serve
from lab.providers.values import Secret, decode, encode

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

ACCOUNT = "123456789012"
CONTROL_PLANE = {"host": "127.0.0.1:6443", "ca": "Y2E=", "kubeconfig": ""}

VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
ROLE = "aws:iam/role:Role"
POLICY = "aws:iam/policy:Policy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
KEY = "aws:kms/key:Key"
NETWORK = "gcp:compute/network:Network"
ACCOUNT_OF_GCP = "gcp:serviceaccount/account:Account"
CLUSTER = "gcp:container/cluster:Cluster"
BUCKET = "gcp:storage/bucket:Bucket"

TRUST = '{"Version":"2012-10-17","Statement":[]}'


class Caller:
    """The engine's side of one provider."""

    def __init__(self, stub: Any) -> None:
        self.stub = stub

    def check(self, token: str, **inputs: Any) -> list[str]:
        answer = self.stub.Check(provider_pb2.CheckRequest(urn=urn(token), news=encode(inputs)))
        return [each.reason for each in answer.failures]

    def create(self, token: str, **inputs: Any) -> tuple[str, dict[str, Any]]:
        answer = self.stub.Create(provider_pb2.CreateRequest(urn=urn(token), properties=encode(inputs)))
        return answer.id, decode(answer.properties)

    def read(self, token: str, identity: str, **inputs: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
        answer = self.stub.Read(provider_pb2.ReadRequest(urn=urn(token), id=identity, inputs=encode(inputs)))
        return answer.id, decode(answer.properties), decode(answer.inputs)

    def update(self, token: str, identity: str, **inputs: Any) -> dict[str, Any]:
        return decode(self.stub.Update(provider_pb2.UpdateRequest(urn=urn(token), id=identity, news=encode(inputs))).properties)

    def delete(self, token: str, identity: str) -> None:
        self.stub.Delete(provider_pb2.DeleteRequest(urn=urn(token), id=identity))


def urn(token: str, name: str = "it") -> str:
    return f"urn:pulumi:dev::flexspot::{token}::{name}"


@contextmanager
def provider(name: str, cloud: CloudFolder, **configuration: Any) -> Generator[Caller]:
    no_proxy = [("grpc.enable_http_proxy", 0)]
    with serve(CloudProvider(name, PLUGINS[name], cloud)) as port, grpc.insecure_channel(f"127.0.0.1:{port}", options=no_proxy) as channel:
        stub: Any = provider_pb2_grpc.ResourceProviderStub(channel)
        stub.Configure(provider_pb2.ConfigureRequest(args=encode(configuration)))
        yield Caller(stub)


@pytest.fixture
def cloud(tmp_path: Path) -> CloudFolder:
    made = CloudFolder(tmp_path / "cloud")
    made.configure(account=ACCOUNT, control_plane=CONTROL_PLANE)
    return made


@pytest.fixture
def aws(cloud: CloudFolder) -> Iterator[Caller]:
    with provider("aws", cloud, region="us-east-1") as caller:
        yield caller


@pytest.fixture
def gcp(cloud: CloudFolder) -> Iterator[Caller]:
    with provider("gcp", cloud, project="acme-ai-dev") as caller:
        yield caller


def refused(problem: str) -> Any:
    return pytest.raises(grpc.RpcError, match=re.escape(problem))


def test_what_was_made_is_there_for_the_next_process(cloud: CloudFolder) -> None:
    with provider("aws", cloud, region="us-east-1") as first:
        identity, outputs = first.create(VPC, cidrBlock="10.0.0.0/16")

    assert re.fullmatch(r"vpc-[0-9a-f]{17}", identity)
    assert outputs["arn"] == f"arn:aws:ec2:us-east-1:{ACCOUNT}:vpc/{identity}"
    with provider("aws", cloud, region="us-east-1") as second:
        assert second.read(VPC, identity) == (identity, outputs, {"cidrBlock": "10.0.0.0/16"})


def test_what_is_gone_is_answered_with_nothing(aws: Caller) -> None:
    identity, _ = aws.create(VPC, cidrBlock="10.0.0.0/16")
    aws.delete(VPC, identity)

    assert aws.read(VPC, identity) == ("", {}, {})
    # A second deletion is none, as with the real providers.
    aws.delete(VPC, identity)


@pytest.mark.parametrize(
    "token,inputs,problem",
    [
        (ROLE, {"name": "nodes", "assumeRolePolicy": TRUST}, "EntityAlreadyExists: Role with name nodes already exists."),
        ("aws:kms/alias:Alias", {"name": "alias/a"}, "AlreadyExistsException: An alias with the name alias/a already exists"),
        ("aws:cloudwatch/logGroup:LogGroup", {"name": "/a"}, "ResourceAlreadyExistsException"),
        ("aws:s3/bucket:Bucket", {"bucket": "a-bucket"}, "BucketAlreadyExists"),
        ("aws:ec2/launchTemplate:LaunchTemplate", {"name": "a"}, "InvalidLaunchTemplateName.AlreadyExistsException"),
        (NETWORK, {"name": "dev"}, "googleapi: Error 409: Already exists: projects/acme-ai-dev/global/networks/dev., alreadyExists"),
        (ACCOUNT_OF_GCP, {"accountId": "nodes-dev"}, "googleapi: Error 409"),
        (BUCKET, {"name": "a-bucket", "location": "us-central1"}, "googleapi: Error 409"),
    ],
)
def test_a_name_that_is_taken_is_refused(token: str, inputs: dict[str, Any], problem: str, aws: Caller, gcp: Caller) -> None:
    caller = gcp if token.startswith("gcp:") else aws
    caller.create(token, **inputs)

    with refused(problem):
        caller.create(token, **inputs)


def test_the_same_name_elsewhere_is_not_taken(aws: Caller) -> None:
    first, second = (aws.create(VPC, cidrBlock="10.0.0.0/16")[0] for _ in range(2))
    aws.create(SUBNET, vpcId=first, cidrBlock="10.0.0.0/24")
    aws.create(SUBNET, vpcId=second, cidrBlock="10.0.0.0/24")

    with refused("InvalidSubnet.Conflict"):
        aws.create(SUBNET, vpcId=second, cidrBlock="10.0.0.0/24")


def test_what_leads_to_nothing_is_refused(aws: Caller, gcp: Caller) -> None:
    with refused("vpcId: The Vpc 'vpc-1' does not exist"):
        aws.create(SUBNET, vpcId="vpc-1", cidrBlock="10.0.0.0/24")
    with refused("The resource 'dev' was not found"):
        gcp.create("gcp:compute/router:Router", name="r", region="us-central1", network="dev")
    with refused("Service account a@acme-ai-dev.iam.gserviceaccount.com does not exist"):
        member = "serviceAccount:a@acme-ai-dev.iam.gserviceaccount.com"
        gcp.create("gcp:projects/iAMMember:IAMMember", project="acme-ai-dev", role="roles/viewer", member=member)


def test_an_identity_pool_is_there_only_with_a_cluster(gcp: Caller) -> None:
    _, account = gcp.create(ACCOUNT_OF_GCP, accountId="team-a-dev")
    bound = {
        "serviceAccountId": account["name"],
        "role": "roles/iam.workloadIdentityUser",
        "member": "serviceAccount:acme-ai-dev.svc.id.goog[a/workloads]",
    }

    with refused("Identity Pool does not exist (acme-ai-dev.svc.id.goog)"):
        gcp.create("gcp:serviceaccount/iAMMember:IAMMember", **bound)
    make_cluster(gcp)
    gcp.create("gcp:serviceaccount/iAMMember:IAMMember", **bound)


def make_cluster(gcp: Caller, *, protected: bool = False) -> str:
    pool = {"workloadPool": "acme-ai-dev.svc.id.goog"}
    return gcp.create(CLUSTER, name="dev", location="us-central1", workloadIdentityConfig=pool, deletionProtection=protected)[0]


def test_what_is_still_in_use_is_not_deleted(aws: Caller) -> None:
    vpc, _ = aws.create(VPC, cidrBlock="10.0.0.0/16")
    subnet, _ = aws.create(SUBNET, vpcId=vpc, cidrBlock="10.0.0.0/24")
    role, _ = aws.create(ROLE, name="nodes", assumeRolePolicy=TRUST)
    policy, _ = aws.create(POLICY, name="nodes", policy=TRUST)
    attachment, _ = aws.create(ATTACHMENT, role="nodes", policyArn=policy)

    with refused(f"DependencyViolation: resource {vpc} has a dependent object ({subnet})"):
        aws.delete(VPC, vpc)
    for token, identity in ((ROLE, role), (POLICY, policy)):
        with refused("DeleteConflict: Cannot delete entity, must detach"):
            aws.delete(token, identity)
    for token, identity in ((SUBNET, subnet), (VPC, vpc), (ATTACHMENT, attachment), (ROLE, role), (POLICY, policy)):
        aws.delete(token, identity)


def test_a_protected_cluster_is_not_deleted_until_it_is_protected_no_more(gcp: Caller) -> None:
    cluster = make_cluster(gcp, protected=True)

    with refused("Cannot destroy cluster because deletion_protection is set to true"):
        gcp.delete(CLUSTER, cluster)
    gcp.update(CLUSTER, cluster, name="dev", location="us-central1", deletionProtection=False)
    gcp.delete(CLUSTER, cluster)


@pytest.mark.parametrize("force", [True, False])
def test_a_bucket_with_objects_goes_only_by_force(force: bool, gcp: Caller, cloud: CloudFolder) -> None:  # noqa: FBT001 -- a parameter of pytest's
    bucket, _ = gcp.create(BUCKET, name="a-bucket", location="us-central1", forceDestroy=force)
    cloud.configure(objects={"a-bucket": 3})

    if force:
        gcp.delete(BUCKET, bucket)
    else:
        with refused("Error trying to delete bucket a-bucket containing objects without"):
            gcp.delete(BUCKET, bucket)


def test_a_key_waits_for_its_deletion_and_is_gone_for_the_program(aws: Caller, cloud: CloudFolder) -> None:
    identity, outputs = aws.create(KEY, deletionWindowInDays=30)
    aws.delete(KEY, identity)

    assert outputs["arn"] == f"arn:aws:kms:us-east-1:{ACCOUNT}:key/{identity}"
    assert aws.read(KEY, identity) == ("", {}, {})
    assert [(held.token, held.state) for held in cloud.all()] == [(KEY, "pending deletion")]


def test_nodes_need_the_network_add_on_and_some_add_ons_need_nodes(aws: Caller) -> None:
    for name in ("cluster", "nodes"):
        aws.create(ROLE, name=name, assumeRolePolicy=TRUST)
    arn = f"arn:aws:iam::{ACCOUNT}:role"
    aws.create("aws:eks/cluster:Cluster", name="dev", roleArn=f"{arn}/cluster", vpcConfig={"subnetIds": []})
    group: dict[str, Any] = {
        "clusterName": "dev",
        "nodeGroupNamePrefix": "system-",
        "nodeRoleArn": f"{arn}/nodes",
        "subnetIds": [],
        "scalingConfig": {"desiredSize": 0, "minSize": 0, "maxSize": 1},
    }

    with refused("NodeCreationFailure"):
        aws.create("aws:eks/nodeGroup:NodeGroup", **group)
    with refused("unexpected state 'DEGRADED'"):
        aws.create("aws:eks/addon:Addon", clusterName="dev", addonName="coredns")
    aws.create("aws:eks/addon:Addon", clusterName="dev", addonName="vpc-cni")
    identity, outputs = aws.create("aws:eks/nodeGroup:NodeGroup", **group)
    aws.create("aws:eks/addon:Addon", clusterName="dev", addonName="coredns")

    assert re.fullmatch(r"dev:system-\d{26}", identity)
    assert outputs["nodeGroupName"] == identity.removeprefix("dev:")
    with refused("ResourceInUseException: Cluster has nodegroups attached"):
        aws.delete("aws:eks/cluster:Cluster", "dev")


def test_what_validation_refuses_is_said_before_anything_is_made(aws: Caller, gcp: Caller) -> None:
    assert aws.check(SUBNET, vpcId="vpc-1", cidrBlock="10.0.0.0") == ["cidr_block is '10.0.0.0', which is not of the form cidr"]
    strategy = {"upgradeSettings": {"strategy": "SHORT_LIVED"}}
    assert gcp.check("gcp:container/nodePool:NodePool", cluster="dev", **strategy) == [
        "upgrade_settings.strategy is 'SHORT_LIVED'; allowed: BLUE_GREEN, SURGE"
    ]


def test_credentials_of_another_account_than_allowed_are_refused(cloud: CloudFolder) -> None:
    with refused("AWS account ID not allowed"), provider("aws", cloud, allowedAccountIds='["111122223333"]'):
        pass


def test_a_read_after_an_import_has_all_inputs_and_one_of_a_known_resource_those_it_had(gcp: Caller) -> None:
    identity, _ = gcp.create(NETWORK, name="dev", autoCreateSubnetworks=False)

    assert gcp.read(NETWORK, identity)[2] == {"name": "dev", "autoCreateSubnetworks": False}
    assert gcp.read(NETWORK, identity, name="x")[2] == {"name": "dev"}


def test_the_clients_key_of_a_cluster_is_a_secret(gcp: Caller) -> None:
    make_cluster(gcp)

    _, outputs, _ = gcp.read(CLUSTER, "projects/acme-ai-dev/locations/us-central1/clusters/dev")

    assert isinstance(outputs["masterAuth"]["clientKey"], Secret)
    assert outputs["endpoint"] == CONTROL_PLANE["host"]


@pytest.mark.parametrize("state,left", [(CREATING, ["there"]), (DELETING, [])])
def test_a_cloud_finishes_what_it_was_asked_for_when_who_asked_is_gone(state: str, left: list[str], cloud: CloudFolder) -> None:
    cloud.put(Held(VPC, "vpc-1", urn(VPC), {}, {}, state))

    with provider("aws", cloud, region="us-east-1"):
        pass

    assert [held.state for held in cloud.all()] == left


def test_every_output_form_has_only_holes_that_can_be_filled() -> None:
    for kind in kinds().values():
        known = {"id": "i", "number": "1", "account": ACCOUNT, "region": "r", "partition": "aws", "project": "p", "minMasterVersion": "1"}
        for form in filter(None, (kind.form, kind.taken, *map(str, kind.outputs.values()))):
            known |= dict.fromkeys(re.findall(r"(?<!{){(?:hash:)?(\w+)}(?!})", form), "x")
        assert all(isinstance(each, str | int | bool) for each in kind.answered(known).values())
