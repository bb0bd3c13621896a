"""Teams and priorities in the declarations of the shipped stacks, cloud by cloud."""

from __future__ import annotations

from typing import Any

import pytest
from program_declarations import as_shipped, declared, plan_of, shipped

from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.infra.declaring.gke_storage import workload_annotations

ACCOUNT = "kubernetes:core/v1:ServiceAccount"
POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
QUOTA = "kubernetes:core/v1:ResourceQuota"
BINDING = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
WORKLOAD_PRIORITY = "kubernetes:kueue.x-k8s.io/v1beta2:WorkloadPriorityClass"
PRIORITY = "kubernetes:scheduling.k8s.io/v1:PriorityClass"
RELEASE = "kubernetes:helm.sh/v3:Release kueue-release"

CLOUD_STACKS = ("dev-gke", "prod-gke", "dev-eks", "prod-eks")
each_cloud_stack = pytest.mark.parametrize("stack", CLOUD_STACKS)


def workloads(stack: str) -> dict[str, dict[str, Any]]:
    """Return the metadata of the teams' service accounts for workloads, by namespace."""
    found = [each["metadata"] for each in as_shipped(stack).inputs_of(ACCOUNT) if each["metadata"]["name"] == "workloads"]
    return {each["namespace"]: each for each in found}


def opened(stack: str) -> set[tuple[str, int]]:
    """Return the addresses and ports that pods of a stack may reach."""
    rules = [rule for each in as_shipped(stack).inputs_of(POLICY) for rule in each["spec"]["egress"]]
    return {(peer["ipBlock"]["cidr"], port["port"]) for rule in rules for peer in rule["to"] if "ipBlock" in peer for port in rule["ports"]}


def test_on_gke_pods_that_act_as_the_team_are_bound_to_its_identity() -> None:
    declarations = as_shipped("prod-gke")
    accounts = {each["accountId"] for each in declarations.inputs_of("gcp:serviceaccount/account:Account")}
    members = {each["member"] for each in declarations.inputs_of("gcp:serviceaccount/iAMMember:IAMMember")}

    for namespace, metadata in workloads("prod-gke").items():
        name, _, place = metadata["annotations"]["iam.gke.io/gcp-service-account"].partition("@")
        assert name in accounts
        assert place == "acme-ai-prod.iam.gserviceaccount.com"
        assert f"serviceAccount:acme-ai-prod.svc.id.goog[{namespace}/workloads]" in members


def test_the_address_of_an_identity_in_a_project_of_a_domain_has_the_domain_last() -> None:
    settings: Any = parse_settings(shipped("dev-gke", project="acme.com:ai-dev"), "dev-gke")

    assert workload_annotations(settings)["research"] == {
        "iam.gke.io/gcp-service-account": "team-research-dev@ai-dev.acme.com.iam.gserviceaccount.com"
    }


@each_cloud_stack
def test_every_team_may_reach_the_identity_server_of_its_cloud(stack: str) -> None:
    own, others = {"gke": (("169.254.169.254/32", 80), "169.254.170"), "eks": (("169.254.170.23/32", 80), "169.254.169")}[stack[-3:]]

    assert own in opened(stack)
    assert not [cidr for cidr, _ in opened(stack) if cidr.startswith(others)]
    assert len(as_shipped(stack).of(POLICY)) == len(plan_of(stack).teams)


@each_cloud_stack
def test_pod_priorities_depend_on_nothing_and_those_of_queued_work_on_kueue(stack: str) -> None:
    declarations = as_shipped(stack)

    names = {each.name for each in declarations.of(WORKLOAD_PRIORITY)}
    assert len(names) == len(plan_of(stack).priorities)
    assert all(RELEASE in declarations.waits_for(f"{WORKLOAD_PRIORITY} {name}") for name in names)
    assert not [each for each in declarations.of(PRIORITY) if RELEASE in declarations.waits_for(f"{PRIORITY} {each.name}")]


@each_cloud_stack
def test_pods_and_queued_work_of_a_class_have_the_same_priority(stack: str) -> None:
    declarations = as_shipped(stack)
    of_pods, of_work = (
        {each["metadata"]["name"]: each["value"] for each in declarations.inputs_of(kind)} for kind in (PRIORITY, WORKLOAD_PRIORITY)
    )

    assert of_pods == of_work


def test_only_the_gpus_of_services_are_in_the_quota_of_services() -> None:
    quotas = [each for each in as_shipped("prod-gke").inputs_of(QUOTA) if each["metadata"]["name"] == "unqueued"]

    gpus = {each["metadata"]["namespace"]: each["spec"]["hard"]["requests.nvidia.com/gpu"] for each in quotas}
    assert gpus == {"ads": "4", "nlp": "0", "search": "8", "vision": "0"}
    # A stack without classes of services has no quota for them.
    assert {each["metadata"]["name"] for each in as_shipped("dev-gke").inputs_of(QUOTA)} == {"team"}


@pytest.mark.slow
def test_groups_of_the_settings_are_bound_in_their_teams_namespace() -> None:
    settings = shipped("dev-gke")
    settings["teams"][0] |= {"submitters": ["ml-research@acme.com"], "viewers": ["finance@acme.com"]}

    bindings = declared("dev-gke", settings).inputs_of(BINDING)

    found = {(each["metadata"]["namespace"], each["roleRef"]["name"], each["subjects"][0]["name"]) for each in bindings}
    assert found == {("research", "submit", "ml-research@acme.com"), ("research", "view", "finance@acme.com")}
