"""The token of Kubernetes' own service account `default` in a team's namespace gives a pod no rights beyond those of every identity.

Flexspot leaves that account as Kubernetes creates it. A pod that names no account gets its token mounted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client.exceptions import ApiException
from tenancy_fixtures import Member, Register, pod, rules_of, team_on

from flexspot.capacity.workloads.requests import SERVICE_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

# Requests about itself that the API server allows every identity.
ABOUT_ITSELF = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}


@pytest.fixture
def namespace(cluster: Cluster, register: Register) -> Iterator[str]:
    with team_on(cluster, register, [], submitters=["ml-red@acme.com"], viewers=["finance@acme.com"]) as name:
        yield name


def test_it_has_only_the_rights_of_every_identity(namespace: str, cluster: Cluster) -> None:
    account, anybody = Member.account(cluster.kubeconfig, namespace, "default"), Member(cluster.kubeconfig, "others@acme.com")

    for place in (namespace, "kube-system", "default"):
        resources, paths = rules_of(account, place)
        of_anybody, paths_of_anybody = rules_of(anybody, place)
        assert {each.partition("/")[2].split()[0] for each in resources} == ABOUT_ITSELF
        assert {each.split()[1] for each in resources} == {"create"}
        assert resources == of_anybody
        # With these, services outside the cluster check tokens: the keys verify but cannot sign.
        assert {path.rstrip("*").rstrip("/") for path in paths - paths_of_anybody} <= {
            "/.well-known/openid-configuration",
            "/openid/v1/jwks",
        }
    for kind in ("v1/Secret", "v1/Pod", "batch/v1/Job"):
        with pytest.raises(ApiException, match="cannot list resource"):
            account.list(kind, namespace)


def has_token(created: KubeObject) -> bool:
    """Return whether the API server has given a pod a token of its service account, in a volume that its container mounts."""
    projected = [each["name"] for each in created["spec"].get("volumes", []) if "serviceAccountToken" in str(each.get("projected"))]
    return any(mount["name"] in projected for mount in created["spec"]["containers"][0].get("volumeMounts", []))


TOKENS: tuple[tuple[dict[str, Any], tuple[str, bool]], ...] = (
    ({}, ("default", True)),
    ({"serviceAccountName": SERVICE_ACCOUNT}, (SERVICE_ACCOUNT, False)),
    ({"serviceAccountName": SERVICE_ACCOUNT, "automountServiceAccountToken": True}, (SERVICE_ACCOUNT, True)),
    ({"automountServiceAccountToken": False}, ("default", False)),
)


def test_the_account_and_the_pod_decide_whether_a_token_is_mounted(namespace: str, cluster: Cluster) -> None:
    # A setting of the account never prevented a pod from requesting a token. The token is harmless because it gives no rights.
    for spec, expected in TOKENS:
        created = cluster.create(pod(namespace, **spec))
        assert (created["spec"]["serviceAccountName"], has_token(created)) == expected
