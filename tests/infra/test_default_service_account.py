"""Kubernetes' own service account `default` is unchanged: it has no cloud identity, and no pod of the platform uses it.

tests/lab/test_default_account_token.py tests the API access of its token. Tests for pods that people render are in
tests/capacity/workloads/test_workloads_keep_rules.py and test_services_keep_rules.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from program_declarations import as_shipped, plan_of

from flexspot.capacity.workloads.requests import SERVICE_ACCOUNT

GKE, EKS = ("dev-gke", "prod-gke"), ("dev-eks", "prod-eks")
ALL = ("local", *GKE, *EKS)

ACCOUNT = "kubernetes:core/v1:ServiceAccount"
TRUSTED = "aws:RequestTag/kubernetes-"
PODS = "pods.eks.amazonaws.com"


def namespaces(stack: str) -> list[str]:
    return [team.namespace for team in plan_of(stack).teams]


@pytest.mark.parametrize("stack", ALL)
def test_no_stack_declares_the_default_service_account(stack: str) -> None:
    accounts = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in as_shipped(stack).inputs_of(ACCOUNT)}

    assert accounts >= {(namespace, SERVICE_ACCOUNT) for namespace in namespaces(stack)}
    assert "default" not in {name for _, name in accounts}


@pytest.mark.parametrize("stack", ALL)
def test_no_role_is_bound_to_the_default_service_account(stack: str) -> None:
    declarations = as_shipped(stack)
    kinds = [f"kubernetes:rbac.authorization.k8s.io/v1:{kind}" for kind in ("RoleBinding", "ClusterRoleBinding")]

    subjects = [subject for kind in kinds for binding in declarations.inputs_of(kind) for subject in binding["subjects"]]

    assert [each for each in subjects if each["kind"] == "ServiceAccount" and each["name"] == "default"] == []
    # Nor to a group that contains it.
    assert [each for each in subjects if each["name"].startswith("system:")] == []


@pytest.mark.parametrize("stack", GKE)
def test_on_gke_no_policy_has_the_default_account_or_its_groups_as_member(stack: str) -> None:
    made = as_shipped(stack).made.values()
    members = [each.inputs["member"] for each in made if each.type.startswith("gcp:") and "member" in each.inputs]
    known = [each for each in members if isinstance(each, str)]

    # Unknown members are Google Cloud service accounts that the stack creates. Members of an identity pool are known texts.
    bound = {member.partition("[")[2].rstrip("]") for member in known if "svc.id.goog" in member}
    assert bound == {f"{namespace}/{SERVICE_ACCOUNT}" for namespace in namespaces(stack)}
    assert [member for member in known if "principal" in member or member.startswith("all")] == []


@pytest.mark.parametrize("stack", EKS)
def test_on_eks_the_default_account_can_assume_no_role(stack: str) -> None:
    """EKS's agent sets the tags that a role's trust requires. No pod can choose them."""
    trusts = [each["assumeRolePolicy"] for each in as_shipped(stack).inputs_of("aws:iam/role:Role") if PODS in each["assumeRolePolicy"]]
    asked = [_condition(trust) for trust in trusts]
    takers = [(each[f"{TRUSTED}namespace"], each[f"{TRUSTED}service-account"]) for each in asked]

    assert len({each["aws:RequestTag/eks-cluster-arn"] for each in asked}) == 1
    assert "default" not in {account for _, account in takers}
    assert sorted(namespace for namespace, account in takers if account == SERVICE_ACCOUNT) == sorted(namespaces(stack))
    assert len(trusts) > len(namespaces(stack)), "those of add-ons and Karpenter are among them"


def _condition(trust: str) -> dict[str, Any]:
    [statement] = json.loads(trust)["Statement"]
    return statement["Condition"]["StringEquals"]


@pytest.mark.parametrize("stack", ALL)
def test_every_pod_of_a_stack_names_its_service_account(stack: str) -> None:
    deployments = as_shipped(stack).inputs_of("kubernetes:apps/v1:Deployment")

    accounts = {each["metadata"]["name"]: each["spec"]["template"]["spec"].get("serviceAccountName") for each in deployments}
    # kube-state-metrics reads the API server, so it has a separate account with a token.
    assert accounts == ({} if stack == "local" else {"kube-state-metrics": "kube-state-metrics"})
