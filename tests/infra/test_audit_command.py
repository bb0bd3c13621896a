"""`flexspot audit` of a server in this process: findings, their costs, and missing permissions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from audited_clusters import (
    GPU_TAINT,
    GROUP,
    KARPENTER,
    SPOT,
    audited,
    deployment,
    month,
    namespace,
    node,
    of_rule,
    pod,
    queued_job,
    queueing,
)
from served_cluster import Served, serving
from typer.testing import CliRunner

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path


def test_idle_nodes_are_reported_with_their_cost_and_the_pods_that_keep_them(tmp_path: Path) -> None:
    objects = [
        namespace("team-a"),
        node("busy", "g6.xlarge", KARPENTER, taints=GPU_TAINT),
        node("idle", "g6.xlarge", KARPENTER, taints=GPU_TAINT),
        node("kept", "g4dn.xlarge", GROUP),
        node("plain", "m7i.large", {}, gpus=0),
        pod("train", "busy", gpus=1),
        pod("web", "kept"),
        pod("agent", "idle", owner="DaemonSet"),
        {**pod("done", "idle", gpus=1), "status": {"phase": "Succeeded"}},
    ]

    code, report = audited(Served(objects), tmp_path)

    idle = {each["object"]: each for each in of_rule(report, "idle-gpu-nodes")}
    assert code == 1
    assert idle["v1/NodePool/l4"]["nodes"] == ["idle"]
    assert float(idle["v1/NodePool/l4"]["usd_per_month"]) == pytest.approx(month("g6.xlarge", CapacityType.ON_DEMAND), abs=0.01)
    assert "pods without GPUs keep them: team-a/web" in idle["v1/node group/t4"]["message"]
    assert [each["nodes"] for each in of_rule(report, "untainted-gpu-nodes")] == [["kept"]]
    # The gravest severity is first, and the most expensive finding within it.
    costs = [float(each["usd_per_month"] or 0) for each in report["findings"] if each["severity"] == "high"]
    assert costs == sorted(costs, reverse=True)


def test_a_new_node_is_not_idle_and_an_unknown_price_has_no_cost(tmp_path: Path) -> None:
    new = node("new", "g6.xlarge", KARPENTER)
    new["metadata"]["creationTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    odd = node("odd", "p9.96xlarge", {"karpenter.sh/nodepool": "odd", "karpenter.sh/capacity-type": "spot"})

    _, report = audited(Served([new, odd]), tmp_path)

    [idle] = of_rule(report, "idle-gpu-nodes")
    assert (idle["nodes"], idle["usd_per_month"]) == (["odd"], None)


@pytest.mark.parametrize(
    "machine,offers,gpus",
    [
        ("g6.12xlarge", {"nvidia.com/gpu": "4"}, 4),
        ("trn1.32xlarge", {"aws.amazon.com/neuron": "16", "aws.amazon.com/neuroncore": "32"}, 16),
        ("p4d.24xlarge", {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "56"}, 8),
        ("g6.12xlarge", {"nvidia.com/gpu": "16"}, 4),
        ("g6.12xlarge", {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "16"}, 4),
        ("m9.huge", {"nvidia.com/gpu.shared": "2"}, 2),
        ("m9.huge", {"nvidia.com/gpu": "2"}, 2),
    ],
    ids=[
        *("whole ones", "Neuron devices and their cores", "partitions", "shared by time", "shared under another name"),
        *("shared ones of a machine that is not known", "a machine that is not known"),
    ],
)
def test_gpus_are_counted_once_under_any_resource_name(machine: str, offers: dict[str, str], gpus: int, tmp_path: Path) -> None:
    one = node("one", machine, {}, gpus=0)
    one["status"]["allocatable"] |= offers

    _, report = audited(Served([one]), tmp_path)

    assert report["summary"]["gpus"] == gpus
    [untainted] = of_rule(report, "untainted-gpu-nodes")
    key = next(each for each in offers if "core" not in each).removesuffix(".shared")
    assert f"taint the pool: {key}=present:NoSchedule" in untainted["remediation"]


def test_spot_tolerant_work_on_demand_costs_the_difference(tmp_path: Path) -> None:
    everything = [{"operator": "Exists"}]
    objects = [
        *(node(name, "g6.xlarge", KARPENTER, taints=GPU_TAINT) for name in ("dear", "mixed", "any")),
        pod("a", "dear", gpus=1, tolerations=SPOT),
        pod("b", "mixed", gpus=1, tolerations=SPOT),
        pod("c", "mixed", gpus=1),
        # A pod that tolerates everything does not state that Spot is acceptable.
        pod("d", "any", gpus=1, tolerations=everything),
    ]

    _, report = audited(Served(objects), tmp_path)

    [dear] = of_rule(report, "on-demand-where-spot-would-do")
    assert dear["nodes"] == ["dear"]
    assert not dear["fails"]
    wanted = month("g6.xlarge", CapacityType.ON_DEMAND) - month("g6.xlarge", CapacityType.SPOT)
    assert float(dear["usd_per_month"]) == pytest.approx(wanted, abs=0.01)


def test_objects_are_linted_except_managed_and_system_ones(tmp_path: Path) -> None:
    made = deployment("made")
    made["metadata"]["ownerReferences"] = [{"kind": "Operator", "name": "a", "controller": True}]
    ended = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ended", "namespace": "team-a"}, "spec": deployment("a")["spec"]}
    ended["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    objects = [*map(namespace, ("team-a", "kube-system")), deployment("web"), made, ended, deployment("addon", "kube-system")]

    _, report = audited(Served(objects), tmp_path)
    _, asked_for = audited(Served(objects), tmp_path, "--namespace", "kube-system")

    assert [each["object"] for each in of_rule(report, "gpu-request-differs-from-limit")] == ["apps/v1/Deployment/team-a/web"]
    assert report["summary"]["managed"] == 1
    assert [each["object"] for each in of_rule(asked_for, "gpu-request-differs-from-limit")] == ["apps/v1/Deployment/kube-system/addon"]


def test_text_names_forbidden_lists_and_the_first_step(tmp_path: Path) -> None:
    objects = [namespace("team-a"), deployment("web"), node("idle", "g6.xlarge", KARPENTER, taints=GPU_TAINT)]
    with serving(Served(objects, forbidden={"pods"}), tmp_path) as kubeconfig:
        output = CliRunner().invoke(app, ["audit", "--kubeconfig", str(kubeconfig)]).output

    assert "not permitted, so what depends on it is not judged, or undecided: list pods." in output
    # Without the list of pods, the node may be in use.
    assert "idle-gpu-nodes" not in output
    assert "     To fix it: " in output


def test_on_gke_a_pool_without_nodes_is_not_reported_as_missing(tmp_path: Path) -> None:
    flavor = queueing("ResourceFlavor", "h100", {"nodeLabels": {"cloud.google.com/gke-nodepool": "h100"}})
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "h100", "resources": []}]}]
    queue = queueing("ClusterQueue", "a", {"resourceGroups": groups})
    objects = [flavor, queue, node("a", "g2-standard-8", {"cloud.google.com/gke-nodepool": "l4"}, taints=GPU_TAINT)]

    _, elsewhere = audited(Served(objects), tmp_path)
    _, on_gke = audited(Served(objects, version="v1.34.1-gke.2200"), tmp_path)

    assert of_rule(elsewhere, "flavor-matches-no-pool")
    assert not of_rule(on_gke, "flavor-matches-no-pool")


def test_objects_with_findings_are_saved_as_manifests_for_lint(tmp_path: Path) -> None:
    audited(Served([namespace("team-a"), deployment("web")]), tmp_path, "--save", str(tmp_path / "saved"))

    text = (tmp_path / "saved" / "apps_v1_Deployment_team-a_web.yaml").read_text()
    assert not [word for word in ("status", "managedFields", "uid", "terminationGracePeriodSeconds") if word in text]
    again = CliRunner().invoke(app, ["lint", str(tmp_path / "saved"), "--format", "json"])
    assert "gpu-request-differs-from-limit" in again.output


def test_an_unwritable_folder_is_reported_before_lists_are_read(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")

    served = Served([namespace("team-a"), deployment("web")])

    with serving(served, tmp_path) as kubeconfig:
        ended = CliRunner().invoke(app, ["audit", "--kubeconfig", str(kubeconfig), "--save", str(tmp_path / "taken" / "deeper")])

    assert isinstance(ended.exception, ExplainedError)
    assert f"cannot be written to {tmp_path / 'taken' / 'deeper'}: " in ended.exception.problem
    assert ended.exception.remedy == f"name a folder; {tmp_path / 'taken'} is a file."
    # The folder is checked first, so that no lists are read in vain.
    assert not served.asked
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_container_is_compared_with_nodes_that_have_its_kind_of_device(tmp_path: Path) -> None:
    def asking(name: str, kind: str, count: int) -> dict[str, Any]:
        made = deployment(name)
        made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {kind: str(count)}}
        return made

    neuron = node("trn", "trn1.32xlarge", {"eks.amazonaws.com/nodegroup": "trn"}, gpus=0)
    neuron["status"]["allocatable"] |= {"aws.amazon.com/neuron": "16", "aws.amazon.com/neuroncore": "32"}
    booting = node("boots", "g6.12xlarge", {"eks.amazonaws.com/nodegroup": "l4"}, gpus=0)
    ready = node("ready", "g6.12xlarge", {"eks.amazonaws.com/nodegroup": "l4"}, gpus=4)
    work = [asking("too-much", "nvidia.com/gpu", 8), asking("fits", "nvidia.com/gpu", 4), asking("neuron", "aws.amazon.com/neuron", 16)]

    _, report = audited(Served([namespace("team-a"), booting, ready, neuron, *work]), tmp_path)
    _, boots = audited(Served([namespace("team-a"), booting, neuron, *work]), tmp_path)

    [found] = of_rule(report, "gpu-container-above-maximum")
    assert found["object"] == "apps/v1/Deployment/team-a/too-much"
    assert "no node that it may have has more than 4" in found["message"]
    # A node that has just started does not have its devices yet.
    assert not of_rule(boots, "gpu-container-above-maximum")


def test_admitted_work_is_not_in_the_wrong_queue(tmp_path: Path) -> None:
    local = queueing("LocalQueue", "gpus", {"clusterQueue": "q"}, namespace="team-a")
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "8"}]}]}]
    queue = queueing("ClusterQueue", "q", {"resourceGroups": groups})
    jobs = [queued_job("runs", suspend=False), queued_job("waits", suspend=True)]

    _, report = audited(Served([namespace("team-a"), local, queue, *jobs]), tmp_path)

    assert [each["object"] for each in of_rule(report, "work-in-the-wrong-queue")] == ["batch/v1/Job/team-a/waits"]


def test_kinds_of_own_rules_that_are_not_listed_are_named(tmp_path: Path) -> None:
    def rule(name: str, kind: str, level: str = "advisory") -> dict[str, Any]:
        return {"name": name, "kinds": [kind, "Deployment"], "check": "true", "message": "m", "level": level}

    rules = [rule("a", "Service"), rule("b", "networking.k8s.io/*"), rule("c", "apps/*"), rule("d", "Secret", "disabled")]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"own-rules": rules}))

    _, report = audited(Served([namespace("team-a")]), tmp_path, "--config", str(tmp_path / "rules.yaml"))

    assert report["summary"]["unlisted"] == ["Service", "networking.k8s.io/*"]


def test_a_suppression_of_a_text_rule_is_no_finding_on_a_cluster(tmp_path: Path) -> None:
    suppression = {"rule": "duplicate-key", "object": "*", "reason": "generated"}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"flexspot": {"suppressions": [suppression]}}))

    _, report = audited(Served([namespace("team-a"), deployment("web")]), tmp_path, "--config", str(tmp_path / "rules.yaml"))

    assert report["findings"]
    assert not of_rule(report, "suppression")
