"""One file of an organisation's rules, and one verdict: of lint, of the policy pack, and of a real API server with the policies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from admission_fixtures import DryRunCluster, with_policies_of
from policy_server import PolicyServer
from program_declarations import declared, shipped

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE
from flexspot.infra.declaring.rules import pack_configuration
from flexspot.policies.engine import Gate
from flexspot.policies.lint.configuration import read_configuration
from flexspot.policies.lint.run import lint

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.lab.cluster import Cluster, KubeObject

TEAM = "team-alpha"
IMAGE, QUOTA, RANGE, MAXIMUM = "image-not-pinned", "quota-key-never-enforced", "gpu-key-in-limit-range", "gpu-container-above-maximum"
IDLE = "gpu-container-without-limit"
RULES: dict[str, Any] = {
    IMAGE: {"level": "mandatory", "locked": True, "moving-tags": ["blue"]},
    # A wrong quota shows that the policies apply: its level does not change.
    RANGE: "advisory",
    IDLE: "disabled",
    MAXIMUM: {"most-gpus": 4},
    "suppressions": [{"rule": QUOTA, "object": f"ResourceQuota/{TEAM}/old-*", "reason": "goes in May", "until": "2999-12-31"}],
}


def job(image: str, gpus: int = 1, annotations: dict[str, str] | None = None) -> KubeObject:
    """Return a Job with GPUs, or one that waits on a GPU node and needs none."""
    container: dict[str, Any] = {"name": "work", "image": image, "resources": {"limits": {GPU_RESOURCE: str(gpus)}}}
    metadata = {"name": "job", "namespace": TEAM, "labels": {"kueue.x-k8s.io/queue-name": "default"}}
    if not gpus:
        del container["resources"]
    pod = {
        "nodeSelector": {} if gpus else {f"{GPU_RESOURCE}.present": "true"},
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 15,
        "containers": [container],
    }
    spec = {"suspend": True, "backoffLimit": 6, "template": {"spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "annotations": annotations or {}}, "spec": spec}


def limits(kind: str, name: str, spec: dict[str, Any]) -> KubeObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": TEAM}, "spec": spec}


ACCEPTED = {f"flexspot.dev/ignore-{IMAGE}": "we know"}
UNCOUNTED = {"hard": {f"limits.{GPU_RESOURCE}": "1"}}
CASES: dict[str, tuple[KubeObject, dict[str, str], dict[str, str]]] = {
    # The object; the findings about it as shipped and with RULES: the rule, and whether it refuses or advises.
    "a level is raised": (job("work:blue"), {}, {IMAGE: "mandatory"}),
    "a tag that moves no more": (job("work:latest"), {IMAGE: "advisory"}, {}),
    "without a tag": (job("work"), {IMAGE: "advisory"}, {IMAGE: "mandatory"}),
    "an annotation, and a lock": (job("work", annotations=ACCEPTED), {}, {IMAGE: "mandatory"}),
    "a parameter": (job("work:1", gpus=4), {MAXIMUM: "mandatory"}, {}),
    "at the other side of it": (job("work:1", gpus=5), {MAXIMUM: "mandatory"}, {MAXIMUM: "mandatory"}),
    "a level is lowered": (
        limits("LimitRange", "range", {"limits": [{"type": "Container", "default": {GPU_RESOURCE: "1"}}]}),
        {RANGE: "mandatory"},
        {RANGE: "advisory"},
    ),
    "a level stays": (limits("ResourceQuota", "new", UNCOUNTED), {QUOTA: "mandatory"}, {QUOTA: "mandatory"}),
    "accepted in the file": (limits("ResourceQuota", "old-one", UNCOUNTED), {QUOTA: "mandatory"}, {}),
    "a rule is taken out": (job("work:1", gpus=0), {IDLE: "mandatory"}, {}),
}

TRIED = {rule for _, shipped_as, set_as in CASES.values() for rule in (*shipped_as, *set_as)}


@pytest.fixture
def rules_file(tmp_path: Path) -> Path:
    file = tmp_path / "flexspot-lint.yaml"
    file.write_text(yaml.safe_dump({"flexspot": RULES}))
    return file


def by_cluster(server: DryRunCluster, each: KubeObject) -> dict[str, str]:
    answer = server.ask(each)
    assert answer.taken or answer.denied, answer.refusal
    return {**dict.fromkeys(answer.warned, "advisory"), **dict.fromkeys(answer.denied, "mandatory")}


@pytest.mark.lab
@pytest.mark.nightly(
    tested_by="test_lint_and_the_policy_pack_agree_on_the_same_file, "
    "test_a_rule_refuses_or_warns_by_its_level_and_a_disabled_rule_is_absent, "
    "test_suppressions_in_settings_cover_the_same_objects_as_in_lint"
)
def test_levels_locks_parameters_and_suppressions_apply_in_the_cluster(cluster: Cluster, rules_file: Path) -> None:
    for admission, place in (({}, 1), ({"rules_file": str(rules_file)}, 2)):
        with with_policies_of(declared("local", shipped("local", admission=admission)), cluster, TEAM, guards=False) as server:
            for name, case in CASES.items():
                assert by_cluster(server, case[0]) == case[place], (name, admission)


def test_lint_and_the_policy_pack_agree_on_the_same_file(rules_file: Path, tmp_path: Path) -> None:
    stack = tmp_path / "Pulumi.mine.yaml"
    stack.write_text(yaml.safe_dump({"config": {"flexspot:platform": shipped("local", admission={"rules_file": rules_file.name})}}))
    written = pack_configuration(stack, tmp_path)
    assert written is not None
    server = PolicyServer(Gate())
    server.configure(json.loads(written.read_text()))
    configuration = read_configuration(rules_file)
    for name, (each, _, wanted) in CASES.items():
        manifest = tmp_path / "manifests" / f"{name}.yaml"
        manifest.parent.mkdir(exist_ok=True)
        manifest.write_text(yaml.safe_dump(each))

        found = [placed.finding.rule for placed in lint([str(manifest)], configuration).open]
        by_lint = {rule: str(configuration.level(rule)) for rule in found if rule in TRIED}
        kind = f"kubernetes:{each['apiVersion']}:{each['kind']}"
        # Alone, and among all resources of a stack.
        said = [*server.analyze(kind, "own", each), *((level, text) for level, _, text in server.analyze_stack([(kind, "own", each)]))]
        by_pack = {text.split(":")[0]: level for level, text in said if text.split(":")[0] in TRIED and "suppressed (" not in text}

        assert by_lint == wanted, name
        assert by_pack == wanted, name
