"""ExistingGkeCluster: it is read, never made, and reached as it was set up."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest
from gke_cluster_args import CLUSTER
from pulumi.provider.experimental.analyzer import Analyzer

from components.gke.existing_cluster import ExistingGkeCluster, ExistingGkeClusterArgs

PATH = "projects/acme-ai-dev/locations/us-central1/clusters/lab"


class Cloud(pulumi.runtime.Mocks):
    """Notes what is made and what is read, and answers a read with what GKE knows of the cluster."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.read: list[tuple[str, str]] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs: dict[str, Any] = dict(args.inputs)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] -- untyped
        if not args.resource_id:
            self.made.append(args.typ)
            return f"{args.name}-id", inputs
        self.read.append((args.typ, args.resource_id))
        return args.resource_id, {
            "name": args.resource_id.rpartition("/")[2],
            "endpoint": "172.16.0.2",
            "masterAuth": {"clusterCaCertificate": "Y2E=", "clientKey": pulumi.Output.secret("key")},
            "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "gke-1.us-central1.gke.goog"}},
        }

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"components invoke nothing; {args.token} was called")


class Preview(Cloud):
    """Answers a read as when nobody could be asked."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        return args.resource_id, {}


def arguments(**changes: str) -> ExistingGkeClusterArgs:
    return {"cluster": "lab", "project": "acme-ai-dev", "region": "us-central1"} | changes  # pyright: ignore[reportReturnType] -- a test's own


def seen(cloud: Cloud, **changes: str) -> dict[str, Any]:
    """The component's outputs, and which of them are secret."""
    pulumi.runtime.set_mocks(cloud, preview=isinstance(cloud, Preview))
    outputs: dict[str, Any] = {}

    @pulumi.runtime.test  # pyright: ignore[reportUnknownMemberType] -- untyped in the SDK
    def program() -> object:
        cluster = ExistingGkeCluster("cluster", arguments(**changes))
        assert cluster.system_pool is None
        names = [*ExistingGkeCluster.__annotations__]
        values: list[pulumi.Output[str]] = [getattr(cluster, name) for name in names]
        facts = [fact for value in values for fact in (value.is_secret(), value.is_known())]
        return pulumi.Output.all(*[pulumi.Output.from_input(fact) for fact in facts]).apply(
            lambda known: outputs.update(secrets=known[::2], known=dict(zip(names, known[1::2], strict=True)))
        ), [value.apply(lambda text, name=name: outputs.update({name: text})) for name, value in zip(names, values, strict=True)]

    program()
    return outputs


def test_the_cluster_is_read_by_its_path_and_nothing_is_made_beside_the_component() -> None:
    cloud = Cloud()

    seen(cloud)

    assert cloud.read == [(CLUSTER, PATH)]
    assert cloud.made == ["flexspot:index:ExistingGkeCluster"]


def test_by_default_its_private_address_is_used_and_its_own_authority_is_trusted() -> None:
    outputs = seen(Cloud())

    written = json.loads(outputs["kubeconfig"])
    assert written["clusters"] == [
        {
            "name": "gke_acme-ai-dev_us-central1_lab",
            "cluster": {"server": "https://172.16.0.2", "certificate-authority-data": "Y2E="},
        }
    ]
    assert written["current-context"] == "gke_acme-ai-dev_us-central1_lab"
    assert outputs["cluster_name"] == "lab"


def test_with_dns_iam_its_name_is_used_whose_certificate_everybody_trusts() -> None:
    outputs = seen(Cloud(), access="dns_iam")

    assert json.loads(outputs["kubeconfig"])["clusters"][0]["cluster"] == {"server": "https://gke-1.us-central1.gke.goog"}


@pytest.mark.parametrize("access", ["private", "dns_iam", "public_cidrs"])
def test_the_kubeconfig_holds_no_secret_and_asks_googles_plugin_for_a_token(access: str) -> None:
    outputs = seen(Cloud(), access=access)

    assert outputs["secrets"] == [False] * 3
    [user] = json.loads(outputs["kubeconfig"])["users"]
    assert user["user"].keys() == {"exec"}
    assert user["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"


@pytest.mark.parametrize("access,flag", [("private", " --internal-ip"), ("dns_iam", " --dns-endpoint"), ("public_cidrs", "")])
def test_the_credentials_command_fits_the_access(access: str, flag: str) -> None:
    command = seen(Cloud(), access=access)["credentials_command"]

    assert command == "gcloud container clusters get-credentials lab --location us-central1 --project acme-ai-dev" + flag


def test_the_certificate_is_left_out_where_the_name_is_used_alone() -> None:
    of = {access: json.loads(seen(Cloud(), access=access)["kubeconfig"])["clusters"][0]["cluster"] for access in ("private", "dns_iam")}

    assert [access for access, cluster in of.items() if "certificate-authority-data" in cluster] == ["private"]


@pytest.mark.parametrize("access", ["public", "DNS_IAM", ""])
def test_an_access_that_gke_does_not_have_is_refused_before_anything_is_read(access: str) -> None:
    cloud = Cloud()

    with pytest.raises(ValueError, match=f"ExistingGkeCluster cluster: access is '{access}'; allowed: private, dns_iam, public_cidrs"):
        seen(cloud, access=access)

    assert (cloud.made, cloud.read) == ([], [])


@pytest.mark.parametrize("access", ["private", "dns_iam"])
def test_a_cluster_of_which_nothing_is_known_yet_gives_no_kubeconfig_of_an_empty_host(access: str) -> None:
    outputs = seen(Preview(), access=access)

    assert outputs["known"]["kubeconfig"] is False


def test_pulumis_component_host_accepts_the_arguments_and_knows_which_are_optional() -> None:
    component = Analyzer("flexspot").analyze([ExistingGkeCluster])["component_definitions"]["ExistingGkeCluster"]

    assert {name for name, each in component.inputs.items() if not each.optional} == {"cluster", "project", "region"}
