"""A provider that imitates the cloud for tests: it records each request and completes it at once.

The program never uses it: it is part of the tests, and only an engine whose environment names its port reaches it. Its state describes
nothing real, so it belongs in a temporary backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine_versions import TOKEN, engine_versions
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from flexspot.lab.providers.cloud_rules.rule_differences import changes
from flexspot.lab.providers.objects import resource_name, type_of
from flexspot.lab.providers.offline import OfflineProvider
from flexspot.lab.providers.planning import diff_answer, top_level
from flexspot.lab.providers.values import Properties, Secret, decode, encode, plain

if TYPE_CHECKING:
    import grpc

CA_CERTIFICATE = "Y2VydGlmaWNhdGU="
CLIENT_KEY = "a-clients-key-that-nobody-may-see"
ENDPOINT = "10.8.15.2"

CLUSTER = "gcp:container/cluster:Cluster"


@dataclass(frozen=True)
class Call:
    """An operation that the engine requested outside of a preview."""

    operation: str
    urn: str


class RecordingProvider(OfflineProvider):
    """An imitation of the provider `name`. It appends requests to `calls`, which several providers may share."""

    def __init__(self, name: str, version: str, calls: list[Call]) -> None:
        super().__init__(name, version)
        self._calls = calls

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Answer with whether the inputs changed, and whether the real provider would replace the resource for that."""
        found = changes(type_of(request.urn), plain(decode(request.old_inputs)), plain(decode(request.news)))
        return diff_answer(found, diffs=top_level(found), replaces=top_level(each for each in found if each.replaces))

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Answer with the inputs and the cloud's own outputs, under an ID that is the same each time."""
        if request.preview:
            return super().Create(request, context)
        self._calls.append(Call("create", request.urn))
        inputs = decode(request.properties)
        return provider_pb2.CreateResponse(id=_identity(request.urn, inputs), properties=encode(_answered(request.urn, inputs)))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Answer with the new inputs and the cloud's own outputs, which no update changes."""
        if not request.preview:
            self._calls.append(Call("update", request.urn))
        return provider_pb2.UpdateResponse(properties=encode(_answered(request.urn, decode(request.news))))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Accept the deletion; nothing exists."""
        self._calls.append(Call("delete", request.urn))
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Answer the program's request for what GKE offers."""
        if request.tok != TOKEN:
            return super().Invoke(request, context)
        answer: Any = provider_pb2.InvokeResponse
        return answer(**{"return": encode(engine_versions(plain(decode(request.args))))})


def _identity(urn: str, inputs: Properties) -> str:
    metadata: Properties = plain(inputs.get("metadata")) or {}
    name: str = plain(inputs.get("name")) or metadata.get("name") or resource_name(urn)
    namespace: str | None = metadata.get("namespace")
    return f"{namespace}/{name}" if namespace else name


def _answered(urn: str, inputs: Properties) -> Properties:
    """Return the outputs that the program reads from a resource, in addition to its inputs."""
    known: Properties = plain(inputs)
    match type_of(urn):
        case "gcp:container/cluster:Cluster":
            endpoints = known["controlPlaneEndpointsConfig"]
            named = {**endpoints["dnsEndpointConfig"], "endpoint": f"gke-{known['name']}.{known['location']}.gke.goog"}
            authority = {**known["masterAuth"], "clusterCaCertificate": CA_CERTIFICATE, "clientKey": Secret(CLIENT_KEY)}
            added = {
                "endpoint": ENDPOINT,
                "masterVersion": "1.35.2-gke.1860000",
                "masterAuth": authority,
                "controlPlaneEndpointsConfig": {**endpoints, "dnsEndpointConfig": named},
            }
        case "gcp:serviceaccount/account:Account":
            email = f"{known['accountId']}@{known['project']}.iam.gserviceaccount.com"
            added = {"email": email, "member": f"serviceAccount:{email}", "name": f"projects/{known['project']}/serviceAccounts/{email}"}
        case "gcp:storage/bucket:Bucket":
            added = {"url": f"gs://{known['name']}"}
        case "kubernetes:helm.sh/v3:Release":
            added = {"status": {"name": known["name"], "namespace": known["namespace"], "version": known["version"], "status": "deployed"}}
        case _:
            added = {}
    return {**inputs, **added}
