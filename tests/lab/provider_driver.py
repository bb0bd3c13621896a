"""Calls the stand-in Kubernetes provider as the Pulumi engine does, without the engine."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from flexspot.lab.cluster import condition
from flexspot.lab.ports import HOST
from flexspot.lab.providers.kubernetes import KubernetesStandIn
from flexspot.lab.providers.serving import serve
from flexspot.lab.providers.values import decode, encode

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from flexspot.lab.cluster import Cluster, KubeObject

_NO_PROXY = [("grpc.enable_http_proxy", 0)]

PATIENCE_SECONDS = 2.0
"""Seconds that the provider waits for a missing namespace or kind in tests; normally 63 s."""


def urn_of(each: KubeObject, name: str = "it") -> str:
    """Return the URN of an object: `kubernetes:core/v1:ConfigMap`, or `kubernetes:batch/v1:Job`."""
    group = each["apiVersion"] if "/" in each["apiVersion"] else f"core/{each['apiVersion']}"
    return f"urn:pulumi:dev::trial::kubernetes:{group}:{each['kind']}::{name}"


@dataclass(frozen=True)
class ResourceState:
    """A resource in the engine's state."""

    urn: str
    identity: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]

    @property
    def name(self) -> str:
        return self.identity.rpartition("/")[2]


@dataclass
class Refused:
    """A failed call: `text` for the user, `kept` and the `reasons` if the state keeps the object with them."""

    text: str = ""
    kept: ResourceState | None = None
    reasons: list[str] = field(default_factory=list)


class Driver:
    """One connection of the engine."""

    def __init__(self, stub: Any) -> None:
        self.stub = stub

    def configure(self, **settings: Any) -> None:
        news = encode(settings)
        self.stub.CheckConfig(provider_pb2.CheckRequest(urn="urn:pulumi:dev::trial::pulumi:providers:kubernetes::p", news=news))
        self.stub.Configure(provider_pb2.ConfigureRequest(args=news, acceptSecrets=True))

    def check(self, each: KubeObject, *, name: str = "it", olds: dict[str, Any] | None = None, seed: bytes = b"seed") -> dict[str, Any]:
        request: Any = provider_pb2.CheckRequest(urn=urn_of(each, name), olds=encode(olds or {}), news=encode(each), randomSeed=seed)
        return decode(self.stub.Check(request).inputs)

    def create(self, each: KubeObject, *, preview: bool = False, timeout: float = 0) -> ResourceState:
        inputs = self.check(each)
        request: Any = provider_pb2.CreateRequest(urn=urn_of(each), properties=encode(inputs), preview=preview, timeout=timeout)
        answer = self.stub.Create(request)
        return ResourceState(urn_of(each), answer.id, inputs, decode(answer.properties))

    def diff(self, created: ResourceState, each: KubeObject, *, ignored: Sequence[str] = ()) -> Any:
        return self.stub.Diff(
            provider_pb2.DiffRequest(
                id=created.identity,
                urn=created.urn,
                olds=encode(created.outputs),
                old_inputs=encode(created.inputs),
                news=encode(self.check(each, olds=created.inputs)),
                ignoreChanges=ignored,
            )
        )

    def changes(self, created: ResourceState, each: KubeObject, *, ignored: Sequence[str] = ()) -> dict[str, str]:
        """Return the differing properties and the kinds of difference, such as {"spec.replicas": "UPDATE"}."""
        kinds: Any = provider_pb2.PropertyDiff.Kind
        found = self.diff(created, each, ignored=ignored).detailedDiff
        return {path: kinds.Name(found[path].kind) for path in found}

    def update(
        self, created: ResourceState, each: KubeObject, *, preview: bool = False, ignored: Sequence[str] = (), timeout: float = 0
    ) -> ResourceState:
        inputs = self.check(each, olds=created.inputs)
        answer = self.stub.Update(
            provider_pb2.UpdateRequest(
                id=created.identity,
                urn=created.urn,
                olds=encode(created.outputs),
                old_inputs=encode(created.inputs),
                news=encode(inputs),
                preview=preview,
                ignoreChanges=ignored,
                timeout=timeout,
            )
        )
        return replace(created, inputs=inputs, outputs=decode(answer.properties))

    def read(self, created: ResourceState) -> ResourceState:
        request: Any = provider_pb2.ReadRequest(
            id=created.identity, urn=created.urn, properties=encode(created.outputs), inputs=encode(created.inputs)
        )
        answer = self.stub.Read(request)
        return ResourceState(created.urn, answer.id, decode(answer.inputs), decode(answer.properties))

    def delete(self, created: ResourceState, *, timeout: float = 0) -> None:
        self.stub.Delete(
            provider_pb2.DeleteRequest(
                id=created.identity, urn=created.urn, properties=encode(created.outputs), old_inputs=encode(created.inputs), timeout=timeout
            )
        )


@contextmanager
def driving(kubeconfig: Path, patience_seconds: float = PATIENCE_SECONDS) -> Generator[Driver]:
    """Yield a provider for the lab, served as for the engine."""
    with serve(KubernetesStandIn(kubeconfig, patience_seconds)) as port, connected(port) as driver:
        yield driver


@contextmanager
def connected(port: int) -> Generator[Driver]:
    """Yield a connection to a running provider. The engine has one for each provider of a program."""
    # By default, channels to one address share a connection.
    own = [*_NO_PROXY, ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"{HOST}:{port}", own) as channel:
        yield Driver(provider_pb2_grpc.ResourceProviderStub(channel))


@contextmanager
def refusal(urn: str = "", inputs: dict[str, Any] | None = None) -> Generator[Refused]:
    """Catch the failure of the call in the block. Fail the test if there is none."""
    found = Refused()
    with pytest.raises(grpc.RpcError) as caught:
        yield found
    error: Any = caught.value
    found.text = error.details()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status: Any = status_pb2.Status.FromString(value)
            detail: Any = provider_pb2.ErrorResourceInitFailed()
            status.details[0].Unpack(detail)
            known = decode(detail.inputs) if detail.inputs.fields else (inputs or {})
            found.reasons = list(detail.reasons)
            found.kept = ResourceState(urn, detail.id, known, decode(detail.properties))


def config_map(namespace: str, name: str = "settings", **data: str) -> KubeObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def deployment(namespace: str, node: str, name: str = "web", replicas: int = 1) -> KubeObject:
    """Return a Deployment whose pods run only on the fake node `node`."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(node)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def pod_spec(node: str) -> dict[str, Any]:
    return {
        "nodeSelector": {"flexspot.test/node": node},
        # All taints, including the one that a node has until the node controller has seen that it is ready.
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}],
    }


@contextmanager
def fake_node(cluster: Cluster, name: str) -> Generator[str]:
    """Create a node that runs pods at once, only for those that select it."""
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "50"}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kwok.x-k8s.io/node": "fake", "flexspot.test/node": name, "kubernetes.io/hostname": name},
            },
            "spec": {"taints": [{"key": "flexspot.test/node", "value": "test", "effect": "NoSchedule"}]},
            "status": {"capacity": capacity, "allocatable": capacity},
        }
    )
    cluster.wait_for("v1/Node", lambda nodes: bool(nodes and condition(nodes[0], "Ready")), "the node", labels=f"flexspot.test/node={name}")
    yield name
    cluster.delete("v1/Node", name)


def definition_of(plural: str, group: str, schema: KubeObject) -> KubeObject:
    """Return the definition of a kind in version v1 of its group."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title()},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
