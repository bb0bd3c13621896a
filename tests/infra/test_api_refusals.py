"""In-place changes that only the clouds' APIs refuse."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from setting_edits import settings_of

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.cli.stacks.deploying import show_doubts
from flexspot.infra.deployment.api_refusals import (
    AWS_PROVIDER,
    EKS_CLUSTER,
    GKE_CLUSTER,
    NODE_GROUP,
    NODE_POOL,
    SUBNET,
    SUBNETWORK,
    ApiRefusals,
    InputChange,
    check_tried,
    known_refusals,
    known_rules,
    refusal,
    refusals,
    refused_changes,
)

ZONES = {"subnet-1": "us-east-1a", "subnet-2": "us-east-1b", "subnet-3": "us-east-1c", "subnet-4": "us-east-1b"}


def cluster(version: str = "1.35", *subnets: str) -> dict[str, Any]:
    return {"version": version, "vpcConfig": {"subnetIds": list(subnets or ("subnet-1", "subnet-2"))}}


def provider(account: str, region: str = "us-east-1") -> dict[str, Any]:
    return {"region": region, "allowedAccountIds": json.dumps([account])}


def group(least: object, size: object) -> dict[str, Any]:
    return {"version": "1.35", "scalingConfig": {"minSize": least, "desiredSize": size, "maxSize": 9}}


def node_pool(group: str, kind: str, name: str = "l4") -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"nodeClassRef": {"group": group, "kind": kind, "name": name}}}}}


def ranges(**named: str) -> dict[str, Any]:
    return {"secondaryIpRanges": [{"rangeName": name, "ipCidrRange": cidr} for name, cidr in named.items()]}


UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
OWN, MANAGED = node_pool("karpenter.k8s.aws", "EC2NodeClass"), node_pool("eks.amazonaws.com", "NodeClass")
RANGES = ranges(pods="10.64.0.0/14", services="10.9.0.0/20")


@pytest.mark.parametrize(
    "token,old,new,rules",
    [
        (EKS_CLUSTER, cluster(), cluster("1.34"), ["version"]),
        (EKS_CLUSTER, cluster(), cluster("1.36"), []),
        (EKS_CLUSTER, cluster(), cluster("1.37"), ["version"]),
        (AWS_PROVIDER, provider("111122223333"), provider("444455556666"), ["account"]),
        (AWS_PROVIDER, provider("111122223333"), provider("111122223333", "us-west-2"), []),
        # Stacks of earlier versions named no account.
        (AWS_PROVIDER, {"region": "us-east-1"}, provider("444455556666"), []),
        # A control plane stays in its zones, and may change its subnets. The zones of another owner's subnets are not known here.
        (EKS_CLUSTER, cluster(), cluster("1.35", "subnet-1", "subnet-3"), ["subnet-zones"]),
        (EKS_CLUSTER, cluster(), cluster("1.35", "subnet-1", "subnet-4"), []),
        (EKS_CLUSTER, cluster(), cluster("1.35", "subnet-1", "subnet-9"), []),
        (NODE_GROUP, {"version": "1.35"}, {"version": "1.34"}, ["node-group-version"]),
        (NODE_GROUP, {"version": "1.35"}, {"version": "1.36"}, []),
        # Changes of a group's size are ignored. Values that a preview does not know are not judged.
        (NODE_GROUP, group(2, 2), group(3, 3), []),
        (NODE_GROUP, group(2.0, 2.0), group(3.0, 2.0), ["node-group-size"]),
        (NODE_GROUP, group(3, 3), group(2, 3), []),
        (NODE_GROUP, group(2, 2), group(3, UNKNOWN), []),
        # A node pool keeps the kind of its class, and so a cluster keeps its mode.
        (NODE_POOL, OWN, MANAGED, ["node-class-kind"]),
        (NODE_POOL, MANAGED, OWN, ["node-class-kind"]),
        (NODE_POOL, OWN, node_pool("karpenter.k8s.aws", "EC2NodeClass", "another"), []),
        (SUBNETWORK, RANGES, ranges(pods="10.72.0.0/14", services="10.9.0.0/20"), ["range-modified"]),
        (SUBNETWORK, RANGES, ranges(more="10.72.0.0/14", services="10.9.0.0/20"), ["ranges-swapped"]),
        (SUBNETWORK, RANGES, ranges(services="10.9.0.0/20", pods="10.64.0.0/14", more="10.80.0.0/14"), []),
    ],
)
def test_changes_are_refused_as_their_cloud_refuses_them(token: str, old: dict[str, Any], new: dict[str, Any], rules: list[str]) -> None:
    assert [rule for rule, _ in refused_changes(token, old, new, lambda subnet: ZONES.get(subnet, ""))] == rules


def limits(*resources: str, enabled: bool = True) -> dict[str, Any]:
    return {"clusterAutoscaling": {"enabled": enabled, "resourceLimits": [{"resourceType": each, "maximum": 1} for each in resources]}}


def doubted(old: dict[str, Any] | None, new: dict[str, Any] | None, *, replaced: bool = False) -> list[tuple[str, str]]:
    return [
        (each.rule, each.text) for each in refusals([InputChange(GKE_CLUSTER, "cluster", old, new, replaced=replaced)]) if not each.certain
    ]


def test_a_removed_gpu_limit_with_node_auto_provisioning_is_reported_and_not_refused() -> None:
    old, fewer = limits("cpu", "memory", "nvidia-l4", "nvidia-tesla-a100"), limits("cpu", "memory", "nvidia-l4")

    assert doubted(old, fewer) == [("gpu-limit-removed", "nvidia-tesla-a100")]
    assert doubted(fewer, old) == []
    assert doubted(old, limits(enabled=False)) == []
    assert doubted(limits("nvidia-l4", enabled=False), fewer) == []
    assert doubted(old, fewer, replaced=True) == []
    assert doubted(old, None) == []
    # Values that a preview does not know are not judged.
    assert doubted(old, {"clusterAutoscaling": UNKNOWN}) == []


def test_an_uncertain_refusal_is_shown_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    show_doubts(refusals([InputChange(GKE_CLUSTER, "cluster", limits("cpu", "nvidia-b200"), limits("cpu"))]))

    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("Not certain: cluster: GKE is said to keep a limit of a GPU")
    assert "(gpu-limit-removed: nvidia-b200)" in shown
    assert "What to do: name what has no pool any more, or boots from Hyperdisk alone, in `cluster.former_accelerators`" in shown


def test_only_the_removed_gpu_limit_is_uncertain_and_does_not_stop_up() -> None:
    assert known_rules().keys() - known_refusals().keys() == {"gpu-limit-removed"}
    found = refusals([InputChange(GKE_CLUSTER, "cluster", limits("nvidia-l4", "cpu"), limits("cpu"))])
    assert refusal(found, ()) is None, "`up` goes on"


PLACE = "urn:pulumi:dev-eks::flexspot"


def listened(*steps: tuple[str, str, str, dict[str, Any] | None, dict[str, Any] | None]) -> list[Any]:
    """Return the refusals of a preview with steps of (operation, type, name, old inputs, new inputs)."""
    listener = ApiRefusals()
    for op, token, name, old, new in steps:
        before = None if old is None else SimpleNamespace(inputs=old, id=f"id of {name}")
        after = None if new is None else SimpleNamespace(inputs=new, id="")
        step = SimpleNamespace(urn=f"{PLACE}::flexspot:index:X${token}::{name}", op=op, old=before, new=after)
        listener.hear(SimpleNamespace(resource_pre_event=SimpleNamespace(metadata=step)))  # pyrefly: ignore[bad-argument-type] -- what of an event is read
    return listener.found


def heard(*steps: tuple[str, str, str, dict[str, Any] | None, dict[str, Any] | None]) -> list[str]:
    return [each.rule for each in listened(*steps)]


def subnet(zone: str, cidr: str, vpc: str = "vpc-1") -> dict[str, Any]:
    return {"vpcId": vpc, "availabilityZone": zone, "cidrBlock": cidr}


OLD_B, OLD_C = subnet("us-east-1b", "10.0.64.0/18"), subnet("us-east-1c", "10.0.128.0/18")


def test_a_zone_removed_from_the_middle_is_refused_because_ranges_would_overlap() -> None:
    moved = subnet("us-east-1c", "10.0.64.0/18")

    steps = [
        ("create-replacement", SUBNET, "private-c", OLD_C, moved),
        ("replace", SUBNET, "private-c", OLD_C, moved),
        ("delete-replaced", SUBNET, "private-c", OLD_C, None),
        ("delete", SUBNET, "private-b", OLD_B, None),
    ]
    assert heard(*steps) == ["subnet-overlap"]
    # The zone's range is deleted with it, and nothing else changes.
    assert heard(("same", SUBNET, "private-c", OLD_C, OLD_C), ("delete", SUBNET, "private-b", OLD_B, None)) == []


def test_subnets_of_another_vpc_or_after_a_deletion_do_not_overlap() -> None:
    assert heard(("create-replacement", SUBNET, "private-c", OLD_C, {**OLD_C, "vpcId": UNKNOWN})) == []
    gone_first = [("delete-replaced", SUBNET, "private-c", OLD_C, None), ("create-replacement", SUBNET, "private-c", OLD_C, OLD_C)]
    assert heard(*gone_first) == []


def test_zones_of_unknown_cluster_subnets_are_those_of_the_created_subnets() -> None:
    def run(comes: str) -> list[str]:
        old = {"version": "1.35", "vpcConfig": {"subnetIds": ["id of control-plane-us-east-1a", "id of control-plane-us-east-1b"]}}
        stays = subnet("us-east-1a", "10.0.255.208/28")
        goes, made = subnet("us-east-1b", "10.0.255.224/28"), subnet(comes, "10.0.255.240/28")
        return heard(
            ("same", SUBNET, "control-plane-us-east-1a", stays, stays),
            ("same", SUBNET, "private-us-east-1d", subnet("us-east-1d", "10.0.0.0/18"), subnet("us-east-1d", "10.0.0.0/18")),
            *([("create", SUBNET, f"control-plane-{comes}", None, made)] if comes != "us-east-1b" else []),
            *([("create-replacement", SUBNET, "control-plane-us-east-1b", goes, made)] if comes == "us-east-1b" else []),
            ("update", EKS_CLUSTER, "cluster", old, {"version": "1.35", "vpcConfig": {"subnetIds": UNKNOWN}}),
            *([("delete", SUBNET, "control-plane-us-east-1b", goes, None)] if comes != "us-east-1b" else []),
        )

    assert run("us-east-1c") == ["subnet-zones"]
    assert run("us-east-1b") == []


def test_replacements_are_not_judged_as_changes_in_place() -> None:
    old, new = cluster("1.35"), cluster("1.37")

    assert heard(("update", EKS_CLUSTER, "cluster", old, new)) == ["version"]
    assert heard(("create-replacement", EKS_CLUSTER, "cluster", old, new), ("delete-replaced", EKS_CLUSTER, "cluster", old, None)) == []


def test_up_refuses_what_the_cloud_refuses_and_says_what_to_do() -> None:
    found = listened(("update", EKS_CLUSTER, "cluster-cluster", cluster("1.34"), cluster("1.36")))

    refused = refusal(found, ())
    assert refused is not None
    assert refused.exit_code == ExitCode.UNMET
    assert "nothing was changed" in refused.problem
    assert "one above what is deployed" in refused.remedy
    assert "Unsupported Kubernetes minor version update from 1.34 to 1.36" in refused.evidence[0]
    assert refused.remedy.endswith("--try-refused version")
    assert refusal(found, ["version"]) is None


def test_an_unknown_rule_to_try_is_bad_usage() -> None:
    with pytest.raises(ExplainedError, match="--try-refused: versoin is not a rule") as refused:
        check_tried(["versoin"])

    assert refused.value.exit_code == ExitCode.BAD_USAGE
    check_tried(known_refusals())


def test_every_rule_has_a_verified_source_and_names_existing_settings() -> None:
    settings = {setting.path for cloud in ("eks", "gke") for setting in settings_of(cloud)}

    for name, rule in known_refusals().items():
        assert rule.source.verified, name
        named = set(re.findall(r"`((?:cluster|network|control_plane)\.[a-z_.]+)`", rule.remedy))
        assert named <= settings, name
