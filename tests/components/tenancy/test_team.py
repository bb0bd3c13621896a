"""Team: the objects of its namespace, and arguments that are refused before anything is registered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from snapshot_fixtures import assert_snapshot
from tenancy_args import LABELS, team_args

from flexspot.capacity.workloads.requests import GANG_SELECTOR, GANG_SERVICE, SERVICE_ACCOUNT
from flexspot.components.tenancy.team import POD_SECURITY_VERSION, Team, TeamArgs

if TYPE_CHECKING:
    from component_types import Refusal, Register

QUOTA = "kubernetes:core/v1:ResourceQuota"
LIMITS = "kubernetes:core/v1:LimitRange"
ACCOUNT = "kubernetes:core/v1:ServiceAccount"
ROLE = "kubernetes:rbac.authorization.k8s.io/v1:Role"
BINDING = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"


def test_a_namespace_has_its_owners_labels_and_admits_no_privileged_pod(register: Register) -> None:
    [namespace] = register(lambda: Team("red", team_args())).of("kubernetes:core/v1:Namespace")

    labels = namespace["metadata"]["labels"]
    assert labels.items() >= LABELS.items()
    for mode in ("enforce", "audit", "warn"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"
        assert labels[f"pod-security.kubernetes.io/{mode}-version"] == POD_SECURITY_VERSION


def test_platform_data_for_the_teams_work_is_in_its_namespace_if_it_is_given(register: Register) -> None:
    [found] = register(lambda: Team("red", team_args(platform='{"form":1}'))).of("kubernetes:core/v1:ConfigMap")

    assert found["metadata"] == {"name": "flexspot-platform", "namespace": "red", "labels": LABELS}
    assert found["data"] == {"plan.json": '{"form":1}'}
    assert register(lambda: Team("blue", team_args())).of("kubernetes:core/v1:ConfigMap") == []


def test_the_quota_is_the_given_one_on_requests_which_kubernetes_counts(register: Register) -> None:
    [quota] = register(lambda: Team("red", team_args())).of(QUOTA)

    assert quota["spec"] == {"hard": {"requests.nvidia.com/gpu": "6", "pods": "200"}}
    assert quota["metadata"] == {"name": "team", "namespace": "red", "labels": LABELS}


def test_work_without_queue_has_a_separate_quota_that_only_counts_its_priority_classes(register: Register) -> None:
    unqueued = {"gpus": 2, "priority_classes": ["gpu-production", "gpu-batch"]}

    quotas = register(lambda: Team("red", team_args(unqueued=unqueued))).of(QUOTA)

    [scoped] = [each for each in quotas if each["metadata"]["name"] == "unqueued"]
    selector = {"scopeName": "PriorityClass", "operator": "In", "values": ["gpu-batch", "gpu-production"]}
    assert scoped["spec"] == {"hard": {"requests.nvidia.com/gpu": "2"}, "scopeSelector": {"matchExpressions": [selector]}}


def test_work_without_queue_is_counted_by_each_kind_of_device(register: Register) -> None:
    devices = {"nvidia.com/gpu": 0, "aws.amazon.com/neuron": 2}
    unqueued = {"gpus": 2, "devices": devices, "priority_classes": ["gpu-production"]}

    quotas = register(lambda: Team("red", team_args(unqueued=unqueued))).of(QUOTA)

    [scoped] = [each for each in quotas if each["metadata"]["name"] == "unqueued"]
    assert scoped["spec"]["hard"] == {"requests.nvidia.com/gpu": "0", "requests.aws.amazon.com/neuron": "2"}


def test_the_largest_container_is_also_the_default_and_without_one_the_default_is_small(register: Register) -> None:
    [made] = register(lambda: Team("red", team_args(container_limits={"cpu": "48", "memory": "192Gi"}))).of(LIMITS)

    [item] = made["spec"]["limits"]
    assert item["max"] == item["default"] == {"cpu": "48", "memory": "192Gi"}
    assert item["defaultRequest"] == {"cpu": "250m", "memory": "512Mi"}
    [item] = register(lambda: Team("red", team_args())).of(LIMITS)[0]["spec"]["limits"]
    assert (item["type"], item["default"], "max" in item) == ("Container", {"cpu": "1", "memory": "2Gi"}, False)


def test_pods_get_no_kubernetes_token_and_workloads_act_as_the_team_in_the_cloud(register: Register) -> None:
    annotations = {"iam.gke.io/gcp-service-account": "team-red-test@acme-ai.iam.gserviceaccount.com"}

    [account] = register(lambda: Team("red", team_args(service_account_annotations=annotations))).of(ACCOUNT)

    assert account["metadata"]["name"] == SERVICE_ACCOUNT
    assert account["automountServiceAccountToken"] is False
    assert account["metadata"]["annotations"] == annotations
    [account] = register(lambda: Team("red", team_args())).of(ACCOUNT)
    assert "annotations" not in account["metadata"]


def test_the_roles_are_bound_to_the_given_groups_and_to_none_by_default(register: Register) -> None:
    registered = register(lambda: Team("red", team_args(submitters=["ml-red@acme.com", "ci", "ci"])))

    assert {each["metadata"]["name"] for each in registered.of(ROLE)} == {"submit", "view"}
    [binding] = registered.of(BINDING)
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "submit"}
    assert [(each["kind"], each["name"]) for each in binding["subjects"]] == [("Group", "ci"), ("Group", "ml-red@acme.com")]


def test_no_role_reads_secrets_changes_roles_creates_pods_or_uses_wildcards(register: Register) -> None:
    roles = register(lambda: Team("red", team_args())).of(ROLE)

    rules = {each["metadata"]["name"]: each["rules"] for each in roles}
    resources = {name: {resource for rule in of for resource in rule["resources"]} for name, of in rules.items()}
    assert not (resources["submit"] | resources["view"]) & {"roles", "rolebindings", "pods/exec", "persistentvolumes", "*"}
    assert "secrets" not in resources["view"]
    assert [rule["verbs"] for rule in rules["submit"] if "secrets" in rule["resources"]] == [["create", "delete"]]
    assert {verb for rule in rules["view"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    writes = {resource: sorted(set(rule["verbs"]) - {"get", "list", "watch"}) for rule in rules["submit"] for resource in rule["resources"]}
    assert {resource: verbs for resource, verbs in writes.items() if verbs} == {
        "configmaps": ["create", "delete", "patch", "update"],
        "cronjobs": ["create", "delete"],
        "jobs": ["create", "delete"],
        "jobsets": ["create", "delete"],
        "pods/portforward": ["create"],
        "secrets": ["create", "delete"],
    }


def test_only_a_teams_groups_can_read_its_queue(register: Register) -> None:
    registered = register(
        lambda: Team("red", team_args(submitters=["ml-red"], viewers=["finance", "ml-red"], cluster_queues=["red-queue", "red-cpu"]))
    )

    [role] = registered.of("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole")
    assert role["rules"] == [
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["clusterqueues"], "resourceNames": ["red-queue", "red-cpu"], "verbs": ["get"]}
    ]
    [binding] = registered.of("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [each["name"] for each in binding["subjects"]] == ["finance", "ml-red"]

    without = register(lambda: Team("red", team_args(cluster_queues=["red-queue", "red-cpu"])))
    assert not without.of("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole")


@pytest.mark.parametrize("args,more", [(team_args(), set[str]()), ({**team_args(), "own_claims": True}, {"create", "delete"})])
def test_submitters_only_create_and_delete_claims_if_own_claims_is_set(args: TeamArgs, more: set[str], register: Register) -> None:
    roles = {each["metadata"]["name"]: each["rules"] for each in register(lambda: Team("red", args)).of(ROLE)}
    rights = [set(rule["verbs"]) for rule in roles["submit"] if "persistentvolumeclaims" in rule["resources"]]
    assert set().union(*rights) == {"get", "list", "watch"} | more


ROOT = Path(__file__).parents[3]
BEGIN, END = "<!-- every right -->", "<!-- end of every right -->"


def test_the_guide_lists_every_permission_of_a_teams_members(register: Register) -> None:
    rules = {
        each["metadata"]["name"]: each["rules"] for each in register(lambda: Team("red", {**team_args(), "own_claims": True})).of(ROLE)
    }
    by_role: dict[str, dict[str, list[str]]] = {}
    for role, of_role in rules.items():
        for rule in of_role:
            for resource in rule["resources"]:
                named = f"{resource}.{rule['apiGroups'][0]}" if rule["apiGroups"][0] else resource
                by_role.setdefault(role, {}).setdefault(named, []).extend(rule["verbs"])

    def cell(verbs: list[str]) -> str:
        unique = list(dict.fromkeys(verbs))
        return "look" if unique == ["get", "list", "watch"] else ", ".join(unique).replace("get, list, watch", "look")

    rows = [f"| `{what}` | {cell(by_role['view'].get(what, []))} | {cell(verbs)} |" for what, verbs in sorted(by_role["submit"].items())]
    table = "\n".join(["| what | `view` | `submit` |", "|---|---|---|", *rows])
    page = ROOT / "docs/guides/workloads.md"
    text = page.read_text()
    assert_snapshot(f"{text[: text.index(BEGIN)]}{BEGIN}\n\n{table}\n\n{text[text.index(END) :]}", page)


def test_pods_that_train_together_have_names_before_they_are_ready_and_pulumi_waits_for_none(register: Register) -> None:
    [service] = register(lambda: Team("red", team_args())).of("kubernetes:core/v1:Service")

    assert service["metadata"]["name"] == GANG_SERVICE
    assert service["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    assert service["spec"] == {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": GANG_SELECTOR}


def test_all_objects_of_a_team_are_its_children_and_have_its_labels(register: Register) -> None:
    registered = register(lambda: Team("red", team_args(submitters=["a"], viewers=["b"], unqueued={"gpus": 1, "priority_classes": ["c"]})))

    made = [(name, inputs) for token, name, inputs in registered.resources if token.startswith("kubernetes:")]
    assert len(made) == 11
    assert all(name.startswith("red-") for name, _ in made)
    assert all(inputs["metadata"]["labels"].items() >= LABELS.items() for _, inputs in made)
    namespaces = {inputs["metadata"].get("namespace") for _, inputs in made if inputs["kind"] != "Namespace"}
    assert namespaces == {"red"}


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"hard": {"pods": "10"}}, "Team red: hard (is pods): has no ceiling in GPUs; add requests.nvidia.com/gpu, 0 for"),
        ({"hard": {}}, "Team red: hard (is {}): has no ceiling in GPUs"),
        ({"hard": {"requests.nvidia.com/gpu": "1", "limits.nvidia.com/gpu": "1"}}, "Team red: hard (is limits.nvidia.com/gpu): Kubernetes"),
        ({"hard": {"requests.nvidia.com/gpu": "-1"}}, "Team red: hard.requests.nvidia.com/gpu (is '-1'): must be a quantity of at least 0"),
        ({"unqueued": {"gpus": -1, "priority_classes": ["a"]}}, "Team red: unqueued.gpus (is -1): must be 0 or more; use 0"),
        (
            {"unqueued": {"gpus": 3, "devices": {"nvidia.com/gpu": 2}, "priority_classes": ["gpu-production"]}},
            "unqueued.gpus (is 3): is not the sum of unqueued.devices; write 2",
        ),
        ({"unqueued": {"gpus": 3, "priority_classes": []}}, "unqueued.priority_classes: is empty, so the 3 GPUs belong to no class"),
        ({"submitters": ["system:authenticated"]}, "Team red: submitters (is 'system:authenticated'): must not be empty or a system group"),
        ({"viewers": [""]}, "Team red: viewers (is ''): must not be empty or a system group"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_registered(changes: dict[str, Any], problem: str, refusal: Refusal) -> None:
    assert problem in refusal(Team, "red", team_args(**changes))
