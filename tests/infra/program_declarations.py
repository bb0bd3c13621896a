"""Declarations of the program for a stack, as in its first preview, with mocks and without an engine."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from unittest import mock

import pulumi
import yaml
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2, source_pb2

from flexspot.capacity.plan.build import build_plan, image_book_of, price_book_of
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.infra.declaring.program import main
from flexspot.lab.providers.offline import UNANSWERED

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.capacity.plan.model import Plan

STACKS = Path(__file__).resolve().parents[2] / "stacks"

COMPONENTS = "flexspot:index:"
"""Prefix of the components' types."""

KUEUE = "kubernetes:kueue.x-k8s.io/v1beta2"

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 -- a mark
"""Marks of unknown and of secret values in the engine's protocol."""


@dataclass
class Declared:
    """A declared resource. References to other resources have the form `TYPE NAME`."""

    type: str
    name: str
    parent: str
    inputs: dict[str, Any]
    provider: str
    after: set[str]
    protected: bool = False
    by_input: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """For each top-level input, the resources from which its value comes."""
    ignored: list[str] = field(default_factory=list[str])
    """Inputs whose changes the program ignores."""
    replaced_for: list[str] = field(default_factory=list[str])
    """Inputs for which the program requires a replacement when they change, regardless of the provider."""

    @property
    def own_provider(self) -> str:
        """Its explicit provider, as `TYPE NAME`. Empty if it has a default one."""
        provider = _named(self.provider.rpartition("::")[0]) if self.provider else ""
        return "" if provider.rpartition(" ")[2].startswith("default") else provider


@dataclass
class Declarations:
    """All resources that a program declares, by `TYPE NAME`, and the ids of those it reads.

    Both are sorted by name, but each after everything that it waits for. Independent resources are declared in another order each time,
    so that order must not reach a test.
    """

    made: dict[str, Declared] = field(default_factory=dict[str, Declared])
    read: list[str] = field(default_factory=list[str])

    def of(self, kind: str) -> list[Declared]:
        return [each for each in self.made.values() if each.type == kind]

    def inputs_of(self, kind: str) -> list[dict[str, Any]]:
        return [each.inputs for each in self.of(kind)]

    def waits_for(self, name: str) -> set[str]:
        """Return everything that must exist before `name`: the dependencies of it and its parents, transitively."""
        found: set[str] = set()
        todo = [name]
        while todo:
            each = self.made.get(todo.pop())
            reached = (each.after | {each.parent}) - found if each else set[str]()
            found |= reached
            todo += reached
        return found

    def ordered(self) -> Declarations:
        """Return the declarations in the order for tests."""
        waits = {name: (each.after | {each.parent, each.own_provider}) & self.made.keys() for name, each in self.made.items()}
        sorter = TopologicalSorter(waits)
        sorter.prepare()
        ready, made = list[str](), dict[str, Declared]()
        while sorter.is_active():
            for name in sorter.get_ready():
                heappush(ready, name)
            first = heappop(ready)
            made[first] = self.made[first]
            sorter.done(first)
        return Declarations(made, sorted(self.read))


def id_of(name: str) -> str:
    """Return the id of a resource that exists already. `name` is `TYPE NAME`."""
    return f"<{name}>"


class Preview(MockMonitor):
    """Answers like the first preview of a stack: with the inputs, without values that only the cloud knows."""

    def __init__(self) -> None:
        self.declarations = Declarations()

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 -- the protocol's name
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type != "pulumi:pulumi:Stack":
            inputs, after = _plain(MessageToDict(request.object)), {_named(each) for each in request.dependencies}
            made = Declared(request.type, request.name, _named(request.parent), inputs, request.provider, after, request.protect)
            made.by_input = {key: {_named(each) for each in of.urns} for key, of in request.propertyDependencies.items()}
            made.ignored = list(request.ignoreChanges)
            made.replaced_for = list(request.replaceOnChanges)
            self.declarations.made[_named(urn)] = made
            identity, outputs = self.made(made)
            request.object.update(outputs)
            return resource_pb2.RegisterResourceResponse(urn=urn, id=identity, object=request.object)
        return resource_pb2.RegisterResourceResponse(urn=urn, object=request.object)

    def made(self, declared: Declared) -> tuple[str, dict[str, Any]]:  # noqa: ARG002 -- for subclasses that create resources
        """Return the id of a resource and the values that the cloud adds to its inputs. A preview has neither."""
        return "", {}

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 -- the protocol's name
        self.declarations.read.append(f"{request.type} {request.id}")
        request.properties.update({"name": request.id.rpartition("/")[2]})
        return resource_pb2.ReadResourceResponse(
            urn=self.make_urn(request.parent, request.type, request.name), properties=request.properties
        )

    def Invoke(self, request: Any) -> Any:  # noqa: N802 -- the protocol's name
        assert request.tok in UNANSWERED, f"the program asks nothing else; {request.tok} was called"
        return resource_pb2.ResourceInvokeResponse()


class LaterPreview(Preview):
    """Answers like a later preview: each resource has an id, and a cluster has its API server."""

    def made(self, declared: Declared) -> tuple[str, dict[str, Any]]:
        """Return the id, and for a cluster the data about its API server."""
        if declared.type.startswith(COMPONENTS):
            return "", {}
        identity = id_of(f"{declared.type} {declared.name}")
        return identity, _of_the_cluster(declared.type, identity, declared.inputs)


def _of_the_cluster(kind: str, identity: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return a cluster's data about its API server, so that its kubeconfig is known. Empty for other resources."""
    if kind == "aws:eks/cluster:Cluster":
        network = {**inputs["vpcConfig"], "clusterSecurityGroupId": f"sg of {identity}"}
        return {"endpoint": f"https://{identity}", "certificateAuthority": {"data": identity}, "vpcConfig": network}
    if kind == "gcp:container/cluster:Cluster":
        endpoints = inputs["controlPlaneEndpointsConfig"]
        by_name = {**endpoints.get("dnsEndpointConfig", {}), "endpoint": f"{identity}.gke.goog"}
        authority = {**inputs["masterAuth"], "clusterCaCertificate": identity}
        return {
            "endpoint": identity,
            "masterAuth": authority,
            "controlPlaneEndpointsConfig": {**endpoints, "dnsEndpointConfig": by_name},
        }
    return {}


class _NoMocks(pulumi.runtime.Mocks):
    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> Any:
        raise AssertionError(args.name)

    def call(self, args: pulumi.runtime.MockCallArgs) -> Any:
        raise AssertionError(args.token)


def _named(urn: str) -> str:
    _, _, kinds, name = urn.split("::", 3)
    kind = kinds.rpartition("$")[2]
    return "the stack" if kind == "pulumi:pulumi:Stack" else f"{kind} {name}"


def _plain(value: Any) -> Any:
    """Return the protocol's JSON with integers, and with marks in place of unknown and secret values."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        # The order of a map in the protocol has no meaning.
        return {"$secret": True} if SECRET in fields.values() else {key: _plain(fields[key]) for key in sorted(fields)}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return {"$unknown": True} if value == UNKNOWN else value


def shipped(stack: str, **changes: Any) -> dict[str, Any]:
    return yaml.safe_load((STACKS / f"Pulumi.{stack}.yaml").read_text())["config"]["flexspot:platform"] | changes


def declared(stack: str, settings: dict[str, Any], monitor: Preview | None = None, *, there: bool = False) -> Declarations:
    """Return the declarations for these settings: in a preview, or with resources that the given `monitor` creates.

    With `there` the resources have ids already, as in a later preview.
    """

    def program() -> None:
        pulumi.runtime.set_all_config({"flexspot:platform": json.dumps(settings)})
        main()

    return under_mocks(stack, program, monitor or (LaterPreview() if there else Preview()), preview=monitor is None)


def under_mocks(stack: str, program: Callable[[], object], monitor: Preview, *, preview: bool = True) -> Declarations:
    """Return the resources that a program declares to a monitor."""
    pulumi.runtime.set_mocks(_NoMocks(), project="flexspot", stack=stack, preview=preview, monitor=monitor)

    @pulumi.runtime.test
    def run() -> None:
        program()

    # For each resource the SDK would read the source of all callers, including pytest's, and write five messages that are never read: a
    # quarter of the time.
    with mock.patch("pulumi.runtime.resource._get_stack_trace", source_pb2.StackTrace), mock.patch("pulumi.log.debug", _unsaid):
        run()
    return monitor.declarations.ordered()


def _unsaid(*_: object, **__: object) -> None:
    """Drop a debug message."""


@functools.cache
def as_shipped(stack: str) -> Declarations:
    return declared(stack, shipped(stack))


@functools.cache
def plan_of(stack: str) -> Plan:
    settings = parse_settings(shipped(stack), stack)
    return build_plan(settings, stack, price_book_of(settings, STACKS, stack), image_book_of(settings, STACKS, stack))


def taints_of(written: list[dict[str, str]]) -> set[tuple[str, str, str]]:
    """Return taints or tolerations, with the effect in Kubernetes' spelling."""
    return {(each["key"], each["value"], {"NO_SCHEDULE": "NoSchedule"}.get(each["effect"], each["effect"])) for each in written}
