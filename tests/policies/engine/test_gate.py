"""The policies inside the engine: blocking, advice, configuration, and values that are never printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pulumi_policy.policy
import pytest
import yaml
from google.protobuf import empty_pb2
from google.protobuf.json_format import MessageToDict
from manifests import manifest, node_pool
from policy_server import PolicyServer, urn_of
from pulumi.runtime.proto import analyzer_pb2_grpc
from pulumi_policy import EnforcementLevel, PolicyConfigSchema, ResourceValidationPolicy, Severity, StackValidationPolicy
from rule_fixtures import UNKNOWN_STRING, cases, rules_named

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.core import read_source
from flexspot.policies.engine import Gate
from flexspot.policies.judging import Level
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi.runtime import proto
    from pulumi_policy import Policy

    from flexspot.capacity.values.verdict import Outcome
    from flexspot.policies.inventory.reading.source import ObjectSource
    from flexspot.policies.inventory.views import View
    from flexspot.policies.judging import Rule

CHECKOUT = Path(__file__).resolve().parents[3]

POLICIES = ["flexspot", *(rule.name for rule in all_rules())]

NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
UNTAINTED = node_pool(
    ("karpenter.k8s.aws/instance-family", "In", ["g6"]),
    ("karpenter.sh/capacity-type", "In", ["on-demand"]),
    limits={"nvidia.com/gpu": 8},
)


def test_a_violation_names_rule_resource_reason_and_remedy_in_this_order() -> None:
    [(level, message)] = PolicyServer(Gate()).analyze(NODE_POOL, "gpu", UNTAINTED)

    assert level == "mandatory"
    assert message == (
        "gpu-pool-without-taint: NodePool gpu: it creates GPU nodes (by its requirement on karpenter.k8s.aws/instance-family), "
        "but spec.template.spec.taints has no taint on nvidia.com/gpu that keeps other pods off.\n"
        "  To fix it: add {key: nvidia.com/gpu, value: present, effect: NoSchedule} to spec.template.spec.taints\n"
        "  FLX001; see docs/rules/gpu-pool-without-taint.md; see https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#example-use-cases"
    )


def test_an_unknown_value_does_not_downgrade_a_provable_violation() -> None:
    inputs = {**UNTAINTED, "spec": {**UNTAINTED["spec"], "limits": UNKNOWN_STRING}}
    server = PolicyServer(Gate(all_rules()[:3]))

    reported = server.analyze(NODE_POOL, "gpu", inputs)
    [(level, urn, undecided)] = server.analyze_stack([(NODE_POOL, "gpu", {})])

    assert [(each, message.partition(":")[0]) for each, message in reported] == [("mandatory", "gpu-pool-without-taint")]
    assert (level, urn) == ("advisory", urn_of(NODE_POOL, "gpu"))
    assert undecided.startswith("gpu-pool-without-limit: NodePool gpu: cannot be decided yet: ")
    assert 'spec.limits["nvidia.com/gpu"] is not known yet' in undecided


def test_undecided_rules_about_one_pool_are_reported_in_one_line() -> None:
    server = PolicyServer(Gate())
    inputs = {**UNTAINTED, "spec": UNKNOWN_STRING}

    assert server.analyze(NODE_POOL, "gpu", inputs) == []
    [(level, urn, message)] = server.analyze_stack([(NODE_POOL, "gpu", {})])

    assert (level, urn) == ("advisory", urn_of(NODE_POOL, "gpu"))
    head, rules = message.split("\n")
    assert head.startswith("flexspot: NodePool gpu: cannot be decided yet by ")
    assert {"gpu-pool-without-taint", "gpu-pool-without-limit", "missing-owner-labels"} <= set(re.split(r"[:,] ", rules))
    assert len(head) < 500
    # Reported once, and not again with the next stack.
    assert server.analyze_stack([]) == []


def test_a_finding_is_reported_once_for_an_object_with_several_pod_templates() -> None:
    container = {"name": "train", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    replica = {"template": {"spec": {"containers": [container]}}}
    job = manifest("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}}, namespace="team-a")
    kind = "kubernetes:kubeflow.org/v1:PyTorchJob"
    server = PolicyServer(Gate())
    server.analyze(kind, "train", job)
    server.analyze("kubernetes:core/v1:Namespace", "team-a", manifest("v1", "Namespace", {}, name="team-a"))

    messages = [message for _, _, message in server.analyze_stack([(kind, "train", {}), ("kubernetes:core/v1:Namespace", "team-a", {})])]
    assert [message.partition(":")[0] for message in messages].count("missing-owner-labels") == 1


def test_advice_about_one_resource_is_not_repeated_for_the_next() -> None:
    server = PolicyServer(Gate())
    server.analyze(NODE_POOL, "gpu", {**UNTAINTED, "spec": UNKNOWN_STRING})

    assert server.analyze("kubernetes:core/v1:ConfigMap", "other", {"apiVersion": "v1", "kind": "ConfigMap"}) == []


@pytest.mark.parametrize("setting,levels", [("advisory", ["advisory"]), ({"level": "advisory"}, ["advisory"]), ("disabled", [])])
def test_an_advisory_rule_reports_without_blocking_and_a_disabled_one_does_not_run(setting: Any, levels: list[str]) -> None:
    server = PolicyServer(Gate(), **{"gpu-pool-without-taint": setting})

    assert [level for level, _ in server.analyze(NODE_POOL, "gpu", UNTAINTED)] == levels


def test_with_all_policies_disabled_nothing_is_reported() -> None:
    server = PolicyServer(Gate())
    server.configure({"all": "disabled"})

    assert server.analyze(NODE_POOL, "gpu", UNTAINTED) == []


@pytest.mark.parametrize("level", ["mandatory", "remediate"])
def test_the_level_of_all_policies_applies_to_an_advisory_rule_and_nothing_is_remediated(level: str) -> None:
    advising = {rule.name for rule in all_rules() if rule.level is Level.ADVISORY and not rule.among}
    broken = next(case for case in cases() if case.rule in advising and case.verdict is Verdict.FAIL)
    server = PolicyServer(Gate(rules_named(broken.rule)))

    before = server.analyze(broken.type_token, broken.name, broken.inputs)
    server.configure({"all": level})
    after = server.analyze(broken.type_token, broken.name, broken.inputs)

    assert [level for level, _ in before] == ["advisory"]
    assert [level for level, _ in after] == ["mandatory"]


def test_the_packs_own_settings_take_precedence_over_those_of_a_policy() -> None:
    most = 'spec.limits["nvidia.com/gpu"] is not set to a number from 0 to {}.'
    server = PolicyServer(Gate(rules_named("gpu-pool-without-limit")))

    server.configure({"gpu-pool-without-limit": {"most": 7}})
    [(_, usual)] = server.analyze(NODE_POOL, "gpu", UNTAINTED)
    server.configure({"gpu-pool-without-limit": {"most": 7}, "flexspot": {"gpu-pool-without-limit": {"most": 6, "level": "advisory"}}})
    [(level, both)] = server.analyze(NODE_POOL, "gpu", UNTAINTED)

    assert most.format(7) in usual
    assert most.format(6) in both
    assert level == "advisory"


def test_only_policies_without_anything_to_judge_are_reported_as_not_applicable() -> None:
    pool = {**UNTAINTED, "spec": {**UNTAINTED["spec"], "limits": {"nvidia.com/gpu": 0}}}
    alone = {rule.name for rule in all_rules() if not rule.among}

    of_a_pool = {each.policy_name for each in PolicyServer(Gate()).answer(NODE_POOL, "gpu", pool).not_applicable}
    of_a_map = PolicyServer(Gate()).answer("kubernetes:core/v1:ConfigMap", "m", {"apiVersion": "v1", "kind": "ConfigMap"}).not_applicable

    assert of_a_pool < alone
    assert "gpu-pool-without-taint" not in of_a_pool
    assert {each.policy_name for each in of_a_map} == alone
    stack = PolicyServer(Gate()).stack_answer([]).not_applicable
    assert {each.policy_name for each in stack} == {rule.name for rule in all_rules()} - alone


WRONG = {"gpu-pool-without-tait": "advisory", "gpu-pool-without-limit": {"mots": 3, "most": "many"}}


@pytest.mark.parametrize("written", [WRONG, {"flexspot": WRONG}], ids=["of policies", "of the pack"])
def test_invalid_settings_block_once_and_are_all_named(written: dict[str, Any]) -> None:
    server = PolicyServer(Gate())
    server.configure(written)

    [(level, message)] = server.analyze("pulumi:pulumi:Stack", "dev", {})

    assert level == "mandatory"
    assert "there is no 'gpu-pool-without-tait'; did you mean gpu-pool-without-taint?" in message
    assert "gpu-pool-without-limit.mots: there is no 'mots'; did you mean most?" in message
    assert "gpu-pool-without-limit.most: 'many' is not allowed; allowed: a whole number of 0 or more" in message
    assert server.analyze("pulumi:pulumi:Stack", "dev", {}) == []


def test_a_rule_that_raises_is_advice_that_names_it_and_stops_no_other_rule() -> None:
    def raises(_view: object, _parameters: object) -> Outcome:
        raise ValueError("hunter2")

    broken, *others = all_rules()
    gate = Gate([replace(broken, judge=raises, name="broken-rule", code="FLX999"), *others, broken])

    reported = PolicyServer(gate).analyze(NODE_POOL, "gpu", UNTAINTED)

    assert [(level, message.partition(":")[0]) for level, message in reported] == [
        ("mandatory", "gpu-pool-without-taint"),
        ("advisory", "broken-rule"),
    ]
    assert "the rule itself is broken: ValueError in test_gate.py, line" in reported[1][1]
    assert "hunter2" not in reported[1][1]


def test_an_object_that_cannot_be_read_is_advice_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(_source: ObjectSource) -> Sequence[View]:
        raise KeyError("hunter2")

    monkeypatch.setattr("flexspot.policies.engine.read_source", partial(read_source, read=raises))
    [(level, message)] = PolicyServer(Gate()).analyze(NODE_POOL, "gpu", UNTAINTED)

    assert level == "advisory"
    assert message.startswith("flexspot: inventory: NodePool gpu: cannot be decided yet: no rule could judge it: KeyError in test_gate.py")
    assert "hunter2" not in message


def test_inputs_of_an_unexpected_shape_stop_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> ObjectSource:
        raise TypeError("hunter2")

    monkeypatch.setattr("flexspot.policies.engine.from_pulumi", raises)

    [(level, message)] = PolicyServer(Gate()).analyze(NODE_POOL, "gpu", UNTAINTED)

    assert level == "advisory"
    assert message.startswith(f"flexspot: urn:pulumi:dev::flexspot::{NODE_POOL}::gpu: no rule could judge it: TypeError")
    assert "hunter2" not in message


def test_the_pack_reports_its_policies_and_the_schema_of_its_settings() -> None:
    info = PolicyServer(Gate()).info

    assert [policy.name for policy in info.policies] == POLICIES
    schema = dict(info.policies[0].configSchema.properties)
    assert set(schema) == {rule.name for rule in all_rules()} | {"suppressions"}
    assert "most-cores-or-gb" in str(schema["gpu-pool-without-limit"])
    [limit] = [policy for policy in info.policies if policy.name == "gpu-pool-without-limit"]
    assert set(limit.configSchema.properties) == {"locked", *(each.name for each in rules_named(limit.name)[0].parameters)}


def test_the_pack_describes_its_policies_as_pulumis_own_sdk_would() -> None:
    """The SDK's server is not public, but it is the only independent reference for the description of policies."""
    own = PolicyServer(Gate()).info
    sdk: Any = getattr(pulumi_policy.policy, "_PolicyAnalyzerServicer")  # noqa: B009 -- not public

    policies = [as_of_the_sdk(each, all_rules()[number - 1] if number else None) for number, each in enumerate(own.policies)]
    servicer = sdk("flexspot", own.version, policies, EnforcementLevel.ADVISORY, description=own.description, display_name="Flexspot")

    assert MessageToDict(own) == MessageToDict(servicer.GetAnalyzerInfo(None, None))


def judges_nothing(_args: object, _report: object) -> None:
    pass


def as_of_the_sdk(policy: proto.PolicyInfo, rule: Rule | None) -> Policy:
    """Return the policy that a user of the SDK would write."""
    known: dict[str, Any] = {"name": policy.name, "config_schema": PolicyConfigSchema(MessageToDict(policy.configSchema)["properties"])}
    if rule is None:
        level = EnforcementLevel.MANDATORY
        return ResourceValidationPolicy(**known, description=policy.description, enforcement_level=level, validate=judges_nothing)
    kind = StackValidationPolicy if rule.among else ResourceValidationPolicy
    return kind(
        **known,
        description=rule.why,
        enforcement_level=EnforcementLevel(rule.level.value),
        severity=Severity(rule.severity.value),
        tags=[rule.code, *rule.clouds],
        remediation_steps=rule.remediation,
        url=rule.link,
        validate=judges_nothing,
    )


@pytest.mark.slow
@pytest.mark.parametrize("python", [shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin") or "python3"])
def test_the_executable_pack_started_by_another_python_serves_and_prints_nothing_but_its_port(python: str) -> None:
    environment = {**os.environ, "PATH": f"{Path(python).parent}:{os.defpath}"}
    with subprocess.Popen([CHECKOUT / "policies" / "pack"], stdout=subprocess.PIPE, text=True, env=environment, cwd="/") as process:
        try:
            assert process.stdout
            port = process.stdout.readline().strip()
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                stub: Any = analyzer_pb2_grpc.AnalyzerStub(channel)
                info = stub.GetAnalyzerInfo(empty_pb2.Empty(), timeout=30)
        finally:
            process.terminate()

    assert info.name == "flexspot"
    assert [policy.name for policy in info.policies] == POLICIES


def test_the_pack_has_the_version_of_the_package_in_a_checkout_and_where_it_is_installed() -> None:
    package = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    folders = (CHECKOUT / "policies", CHECKOUT / "policies" / "flexspot" / "policies")

    described = [yaml.safe_load((each / "PulumiPolicy.yaml").read_text(encoding="utf-8")) for each in folders]
    assert [each["version"] for each in described] == [package, package]
    assert described[0]["description"] == described[1]["description"]
