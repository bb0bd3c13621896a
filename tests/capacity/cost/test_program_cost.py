"""Cost of a program from its previews and states: changes, unknown parts, regions, and bounds."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.cost.programs import aws, google, kubernetes
from flexspot.capacity.cost.programs.declared import UNKNOWN, is_program, read_program, region_of
from flexspot.capacity.cost.programs.program_cost import ProgramCost, program_cost
from flexspot.capacity.values.errors import ExplainedError

BOOKS = {cloud: prices_of(cloud) for cloud in Vendor}
PROVIDER = "urn:pulumi:dev::acme::pulumi:providers:aws::here"


def urn(kind: str, name: str) -> str:
    return f"urn:pulumi:dev::acme::{kind}::{name}"


def resource(kind: str, name: str = "it", inputs: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    ours = {"provider": f"{PROVIDER}::1"} if kind.startswith("aws:") else {}
    return {"urn": urn(kind, name), "type": kind, "custom": True, "inputs": inputs or {}, **ours, **more}


def here(region: str = "us-east-1") -> dict[str, Any]:
    return {"urn": PROVIDER, "type": "pulumi:providers:aws", "custom": True, "inputs": {"region": region}}


def of_state(*resources: dict[str, Any], region: str | None = None) -> ProgramCost:
    written = {"version": 3, "deployment": {"resources": [here(), *resources]}}
    return program_cost(read_program(written, "file", region), BOOKS)


def of_preview(*steps: dict[str, Any], **more: Any) -> ProgramCost:
    return program_cost(read_program({"config": {"aws:region": "us-east-1"}, "steps": list(steps), **more}, "file"), BOOKS)


def step(operation: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    return {"op": operation, "oldState": old, "newState": new}


DISK = {"rootBlockDevice": {"volumeType": "gp3", "volumeSize": 100}}


def instance(machine: str, name: str = "it", **more: Any) -> dict[str, Any]:
    return resource("aws:ec2/instance:Instance", name, {"instanceType": machine, **DISK}, **more)


def test_a_change_is_the_difference_of_what_is_there_and_what_is_to_be() -> None:
    found = of_preview(
        step("same", instance("t3.micro", "a"), instance("t3.micro", "a")),
        step("update", instance("t3.micro", "b"), instance("t3.medium", "b")),
        step("create", None, instance("t3.micro", "c")),
        step("delete", instance("t3.micro", "d"), None),
        changeSummary={"same": 1, "update": 1, "create": 1, "delete": 1},
    )

    assert found.name == "acme/dev"
    assert [(each.name, str(each.difference.expected_usd)) for each in found.changes] == [("b", "22.78"), ("c", "15.59"), ("d", "-15.59")]
    assert found.difference is not None
    assert found.difference.expected_usd == Decimal("22.78")
    assert found.complete


def test_a_replacement_is_one_resource_before_and_one_after() -> None:
    old, new = instance("t3.micro"), instance("t3.medium")
    found = of_preview(step("create-replacement", old, new), step("replace", old, new), step("delete-replaced", old, old))

    assert [each.name for each in found.changes] == ["it"]
    assert found.total.expected_usd == Decimal("30.37") + 8


def test_unchanged_resources_that_a_preview_leaves_out_are_reported() -> None:
    """`pulumi preview --json` shows them only with --show-sames; a sum without them would look complete."""
    found = of_preview(step("create", None, instance("t3.micro")), changeSummary={"same": 4, "create": 1})

    assert found.not_shown == 4
    assert not found.complete


def test_what_is_only_read_and_what_is_a_component_is_not_billed_and_what_an_unfinished_replacement_left_is() -> None:
    found = of_state(
        instance("t3.micro", "a", external=True),
        {"urn": urn("acme:index:Web", "web"), "type": "acme:index:Web", "custom": False},
        instance("t3.micro", "b"),
        instance("t3.micro", "b", delete=True),
    )

    assert [each.name for each in found.lines] == ["b", "b"]
    assert found.before is None
    assert found.difference is None


def test_values_unknown_before_creation_and_secrets_are_reported_and_in_no_sum() -> None:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"}
    found = of_state(
        *(
            resource("aws:ec2/instance:Instance", str(number), {"instanceType": each, **DISK})
            for number, each in enumerate((UNKNOWN, secret))
        )
    )

    assert [each.missing for each in found.lines] == [("its machine type is not known yet",)] * 2
    assert found.total.expected_usd == 16
    assert all(each.unbounded for each in found.lines)


def test_the_clouds_answer_completes_the_program() -> None:
    """The image chooses a machine's disk: once the machine exists, its state contains the disk."""
    declared = resource("aws:ec2/instance:Instance", inputs={"instanceType": "t3.micro"})

    assert of_state(declared).missing == [("it", "its root disk, which the image chooses")]
    assert of_state(declared | {"outputs": {"rootBlockDevice": [{"volumeType": "gp3", "volumeSize": 8}]}}).missing == []


@pytest.mark.parametrize(
    "inputs, provider, region",
    [
        ({"region": "eu-central-1"}, "us-east-1", "eu-central-1"),
        ({"availabilityZone": "us-west-2b"}, "us-east-1", "us-west-2"),
        ({}, "ap-northeast-1", "ap-northeast-1"),
    ],
)
def test_a_resource_is_where_it_its_zone_or_its_provider_says(inputs: dict[str, str], provider: str, region: str) -> None:
    written = {"deployment": {"resources": [here(provider), resource("aws:ec2/eip:Eip", inputs=inputs)]}}

    assert [each.region for each in read_program(written, "file").after] == [region]


def test_without_a_region_nothing_is_priced_and_the_option_says_where() -> None:
    written = {"deployment": {"resources": [resource("aws:ec2/natGateway:NatGateway")]}}

    nowhere, somewhere = (program_cost(read_program(written, "file", region), BOOKS) for region in (None, "us-east-1"))

    assert "give --region" in nowhere.missing[0][1]
    assert nowhere.total.expected_usd == 0
    assert str(somewhere.total.expected_usd) == "32.85"


@pytest.mark.parametrize(
    "place, region",
    [
        ("us-central1-a", "us-central1"),
        ("europe-west12", "europe-west12"),
        ("us-gov-west-1a", "us-gov-west-1"),
        ("https://www.googleapis.com/compute/v1/projects/p/zones/asia-east1-b", "asia-east1"),
        ("US", None),
        ("global", None),
        (UNKNOWN, None),
        (3, None),
    ],
)
def test_a_place_has_its_region(place: Any, region: str | None) -> None:
    assert region_of(place) == region


def test_an_unknown_spot_price_is_at_most_the_on_demand_price() -> None:
    spot = {"instanceType": "t3.medium", "instanceMarketOptions": {"marketType": "spot"}, **DISK}
    found = of_state(resource("aws:ec2/instance:Instance", inputs=spot))

    assert found.missing == [("it", "the price of t3.medium spot in us-east-1")]
    assert found.total.expected_usd == 8
    assert found.total.worst_usd == Decimal("30.95") + 8
    assert not found.lines[0].unbounded


def test_unknown_types_are_counted_and_those_that_cost_nothing_are_not() -> None:
    found = of_state(
        resource("aws:rds/instance:Instance", "a"),
        resource("aws:rds/instance:Instance", "b"),
        resource("aws:iam/role:Role"),
        resource("random:index/randomId:RandomId"),
        resource("kubernetes:apps/v1:Deployment"),
        resource("kubernetes:ec2.aws.upbound.io/v1beta1:Instance"),
        resource("aws:s3/bucket:Bucket"),
    )

    assert found.not_priced == {"aws:rds/instance:Instance": 2, "kubernetes:ec2.aws.upbound.io/v1beta1:Instance": 1}
    assert [each.by_use for each in found.lines] == [("what it stores and moves, and requests",)]


def test_a_file_that_is_neither_preview_nor_state_is_refused_with_what_to_give() -> None:
    assert not is_program({"steps": 3})
    with pytest.raises(ExplainedError, match="neither a preview nor a state"):
        read_program({"resources": []}, "file")


POOL = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}


def karpenter(machines: list[str], limits: dict[str, str]) -> dict[str, Any]:
    named = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": machines}
    spec = {"nodeClassRef": {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}, "requirements": [POOL, named]}
    return resource("kubernetes:karpenter.sh/v1:NodePool", inputs={"spec": {"template": {"spec": spec}, "limits": limits}})


SIZES = {"m6i.large": (2, "0.096"), "m6i.2xlarge": (8, "0.384"), "c5.xlarge": (4, "0.17"), "r5.large": (2, "0.126")}


@given(st.lists(st.sampled_from(sorted(SIZES)), min_size=1, max_size=4, unique=True), st.integers(0, 24), st.none() | st.integers(0, 6))
def test_no_nodes_that_a_karpenter_pool_may_make_cost_more_than_its_most(machines: list[str], cpu: int, nodes: int | None) -> None:
    """Test every mixture under the limits, each node with the fee of Auto Mode."""
    limits = {"cpu": str(cpu)} | ({} if nodes is None else {"nodes": str(nodes)})
    [line] = of_state(karpenter(machines, limits), region="us-east-1").lines
    most_each = [range(cpu // SIZES[each][0] + 1) for each in machines]
    dearest = max(
        (
            sum((count * Decimal(SIZES[each][1]) * Decimal("1.12") * 744 for count, each in zip(counts, machines, strict=True)), Decimal(0))
            for counts in product(*most_each)
            if sum(count * SIZES[each][0] for count, each in zip(counts, machines, strict=True)) <= cpu
            and (nodes is None or sum(counts) <= nodes)
        ),
        default=Decimal(0),
    )

    assert line.figures.worst_usd >= dearest.quantize(Decimal("0.01"))
    assert not line.unbounded
    if len(machines) == 1:
        assert line.figures.worst_usd == dearest.quantize(Decimal("0.01"))


def test_a_karpenter_pool_without_a_limit_that_holds_has_no_most() -> None:
    [line] = of_state(karpenter(["m6i.large"], {"nvidia.com/gpu": "8"}), region="us-east-1").lines

    assert line.unbounded
    assert line.missing == ("how many nodes it may make: no limit of it bounds each of its machines",)


@pytest.mark.parametrize(
    "pool, cluster, nodes",
    [
        ({"location": "us-central1-a", "nodeCount": 2}, None, 2),
        ({"location": "us-central1", "nodeCount": 2}, None, 6),
        ({"location": "us-central1", "nodeCount": 2, "nodeLocations": ["us-central1-a"]}, None, 2),
        ({"nodeCount": 1}, {"location": "us-central1", "nodeLocations": ["us-central1-a", "us-central1-b"]}, 2),
        ({"nodeCount": 1}, {"location": "us-central1-a", "nodeLocations": ["us-central1-b"]}, 2),
        ({"location": "us-central1", "initialNodeCount": 1, "autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 4}}, None, 3),
        ({"location": "us-central1", "initialNodeCount": 0, "autoscaling": {"minNodeCount": 1, "maxNodeCount": 4}}, None, 3),
    ],
)
def test_a_pool_of_gke_has_its_nodes_in_each_zone(pool: dict[str, Any], cluster: dict[str, Any] | None, nodes: int) -> None:
    kind = "gcp:container/cluster:Cluster"
    clusters = [] if cluster is None else [resource(kind, "c", {**cluster, "removeDefaultNodePool": True})]
    made = resource("gcp:container/nodePool:NodePool", inputs=pool, propertyDependencies={"cluster": [urn(kind, "c")]})
    found = next(each for each in of_state(*clusters, made, region="us-central1").lines if each.name == "it")

    assert found.what[0].startswith(f"{nodes} ")
    assert found.figures.expected_usd == (Decimal("0.033506") * 730 * nodes + 100 * nodes * Decimal("0.1")).quantize(Decimal("0.01"))


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 10**6)
    | st.floats(allow_nan=True)
    | st.sampled_from(["", UNKNOWN, "SPOT", "us-east-1a", "3", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["spec", "ebs", "minSize", "requirements", "key"]), inner, max_size=2)
    ),
    max_leaves=6,
)
FIELDS = ["instanceType", "scalingConfig", "mixedInstancesPolicy", "rootBlockDevice", "nodeConfig", "autoscaling", "nodeCount", "spec"]
KINDS = [*aws.BILLED, *google.BILLED, *kubernetes.KINDS]


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), ANY, max_size=5))
def test_whatever_a_resource_says_it_is_priced_or_reported(kind: str, inputs: dict[str, Any]) -> None:
    """No traceback, no negative sum, and "at most" never below "at least"."""
    for line in of_state(resource(kind, inputs=inputs), region="us-east-1").lines:
        assert line.figures.floor_usd >= 0
        assert line.unbounded or line.figures.worst_usd >= line.figures.expected_usd or line.missing
