"""What a pod under Kubernetes' own service account `default` can do with its token in a team's namespace: what anybody can, nothing.

Flexspot leaves that account as Kubernetes makes it. A pod that names no account gets its token mounted; so here the token is taken and
tried, with everything of the local stack on the API server: roles, admission policies, quotas.
"""

from __future__ import annotations

import uuid
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config
from kubernetes.client.exceptions import ApiException
from program_declarations import as_shipped
from tenancy_ground import Member, has_default, pod

from capacity.workloads.requests import SERVICE_ACCOUNT
from lab.cluster import Cluster, status_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lab.cluster import KubeObject
    from lab.control_plane import ControlPlane

pytestmark = pytest.mark.lab

OWN, OTHERS = "team-alpha", ("team-beta", "kube-system", "default")
FORBIDDEN = 403

READABLE = (
    *("v1/Secret", "v1/Pod", "v1/ConfigMap", "v1/ServiceAccount", "v1/ResourceQuota", "v1/Event", "v1/PersistentVolumeClaim"),
    *("batch/v1/Job", "kueue.x-k8s.io/v1beta2/Workload", "kueue.x-k8s.io/v1beta2/LocalQueue"),
    *("rbac.authorization.k8s.io/v1/Role", "rbac.authorization.k8s.io/v1/RoleBinding", "networking.k8s.io/v1/NetworkPolicy"),
)
CLUSTER_WIDE = (
    *("v1/Namespace", "v1/Node", "v1/PersistentVolume", "scheduling.k8s.io/v1/PriorityClass", "karpenter.sh/v1/NodePool"),
    *("kueue.x-k8s.io/v1beta2/ClusterQueue", "rbac.authorization.k8s.io/v1/ClusterRole", "rbac.authorization.k8s.io/v1/ClusterRoleBinding"),
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding",
)

# What the API server lets every identity ask about itself.
ABOUT_ITSELF = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}


@pytest.fixture(scope="module")
def as_default(stack_lab: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """The API server as a pod under `default` sees it, with the local stack's objects on it."""
    admin = Cluster(stack_lab.home.kubeconfig)
    admin.apply(*local_objects())
    for namespace in (OWN, *OTHERS):
        admin.wait_for("v1/ServiceAccount", has_default, f"the service account default of {namespace}", namespace=namespace)
    return Cluster(kubeconfig_of(stack_lab, OWN, "default", tmp_path_factory.mktemp("pod")))


@pytest.fixture
def admin(stack_lab: ControlPlane, as_default: Cluster) -> Cluster:
    """The API server as the lab's administrator sees it, once the stack's objects are there."""
    assert as_default.kubeconfig != stack_lab.home.kubeconfig
    return Cluster(stack_lab.home.kubeconfig)


def local_objects() -> list[KubeObject]:
    """All that the local stack declares, in its order."""
    return [each.inputs for each in as_shipped("local").made.values() if each.type.startswith("kubernetes:")]


def kubeconfig_of(lab: ControlPlane, namespace: str, account: str, folder: Path) -> Path:
    """A kubeconfig with a token of a service account, as a pod under it would find one."""
    core = core_of(Cluster(lab.home.kubeconfig))
    token = core.create_namespaced_service_account_token(account, namespace, {"spec": {"expirationSeconds": 3600}}).status.token
    content = yaml.safe_load(lab.home.kubeconfig.read_text())
    for user in content["users"]:
        user["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    path.chmod(0o600)
    return path


def core_of(cluster: Cluster) -> Any:
    """The client for what `Cluster` has no word for: tokens. It is not typed."""
    settings = kubernetes_client.Configuration()
    kubernetes_config.load_kube_config(str(cluster.kubeconfig), client_configuration=settings)
    settings.proxy = None
    return kubernetes_client.CoreV1Api(kubernetes_client.ApiClient(settings))


def answer(act: Callable[[], object]) -> int:
    """The HTTP status with which a request is refused; 200 when it is not."""
    try:
        act()
    except ApiException as error:
        return status_of(error)
    return 200


def tries(cluster: Cluster, kind: str, namespace: str | None) -> dict[str, int]:
    """What becomes of each verb on a kind. Who may do something is decided before whether it is there, and whether it is written right."""
    api_version, _, name = kind.rpartition("/")
    metadata = {"name": f"try-{uuid.uuid4().hex[:8]}", **({"namespace": namespace} if namespace else {})}
    return {
        "list": answer(lambda: cluster.list(kind, namespace)),
        "get": answer(lambda: cluster.get(kind, "default", namespace)),
        "create": answer(lambda: cluster.create({"apiVersion": api_version, "kind": name, "metadata": metadata})),
        "patch": answer(lambda: cluster.patch(kind, "default", {"metadata": {"labels": {"tried": "yes"}}}, namespace)),
        "delete": answer(lambda: cluster.delete(kind, "default", namespace)),
    }


def rules_of(cluster: Cluster, namespace: str) -> tuple[set[str], set[str]]:
    """What an identity may do in a namespace: `GROUP/RESOURCE VERB`, and the paths outside of the API that it may read."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "metadata": {}, "spec": {"namespace": namespace}}
    status = cluster.create(review)["status"]
    resources = {
        f"{group}/{resource} {verb}"
        for rule in status["resourceRules"]
        for group, resource, verb in product(rule.get("apiGroups") or [""], rule.get("resources") or [""], rule["verbs"])
    }
    outside: list[dict[str, list[str]]] = status.get("nonResourceRules") or []
    return resources, {path for rule in outside for path in rule.get("nonResourceURLs") or []}


@pytest.mark.parametrize("kind", READABLE)
def test_its_token_reads_and_changes_nothing_in_its_own_namespace_nor_in_another(kind: str, as_default: Cluster) -> None:
    for namespace in (OWN, *OTHERS):
        assert set(tries(as_default, kind, namespace).values()) == {FORBIDDEN}, namespace


@pytest.mark.parametrize("kind", CLUSTER_WIDE)
def test_its_token_reads_and_changes_nothing_of_the_cluster(kind: str, as_default: Cluster) -> None:
    assert set(tries(as_default, kind, None).values()) == {FORBIDDEN}


def test_it_gets_no_token_of_the_account_that_acts_as_the_team(as_default: Cluster) -> None:
    core = core_of(as_default)

    for namespace, account in ((OWN, SERVICE_ACCOUNT), (OWN, "default"), ("team-beta", SERVICE_ACCOUNT)):
        body = {"spec": {"expirationSeconds": 3600}}
        assert (
            answer(
                lambda account=account, namespace=namespace, body=body: core.create_namespaced_service_account_token(
                    account, namespace, body
                )
            )
            == FORBIDDEN
        )


@pytest.mark.parametrize("namespace", [OWN, *OTHERS])
def test_the_server_itself_lists_no_right_that_not_everybody_has(namespace: str, as_default: Cluster, admin: Cluster) -> None:
    resources, paths = rules_of(as_default, namespace)
    of_anybody, paths_of_anybody = rules_of(Member(admin.kubeconfig, "others@acme.com"), namespace)

    assert {each.partition("/")[2].split()[0] for each in resources} == ABOUT_ITSELF
    assert {each.split()[1] for each in resources} == {"create"}
    assert resources == of_anybody
    # With these, services outside of the cluster check tokens: keys to verify with, none to sign with.
    assert {path.rstrip("*").rstrip("/") for path in paths - paths_of_anybody} <= {"/.well-known/openid-configuration", "/openid/v1/jwks"}


def has_token(made: KubeObject) -> bool:
    """Whether the API server has given a pod a token of its service account, in a volume that its container mounts."""
    projected = [each["name"] for each in made["spec"].get("volumes", []) if "serviceAccountToken" in str(each.get("projected"))]
    return any(mount["name"] in projected for mount in made["spec"]["containers"][0].get("volumeMounts", []))


@pytest.mark.parametrize(
    "spec,expected",
    [
        ({}, ("default", True)),
        ({"serviceAccountName": SERVICE_ACCOUNT}, (SERVICE_ACCOUNT, False)),
        ({"serviceAccountName": SERVICE_ACCOUNT, "automountServiceAccountToken": True}, (SERVICE_ACCOUNT, True)),
        ({"automountServiceAccountToken": False}, ("default", False)),
    ],
    ids=["names no account", "names the team's", "asks for the team's token", "asks for none"],
)
def test_which_pods_have_a_token_is_the_accounts_default_and_the_pods_own_choice(
    spec: dict[str, Any], expected: tuple[str, bool], admin: Cluster
) -> None:
    # A setting of the account never kept a token from whoever asked for it: that the token opens nothing does.
    made = admin.create(pod(OWN, **spec))
    try:
        assert (made["spec"]["serviceAccountName"], has_token(made)) == expected
    finally:
        admin.delete("v1/Pod", made["metadata"]["name"], OWN)
