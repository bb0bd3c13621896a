"""What the program declares for a stack, as the first preview of it would show: with mocks, without an engine."""

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
"""How the types of components begin."""

KUEUE = "kubernetes:kueue.x-k8s.io/v1beta2"

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 -- a mark
"""How the engine's protocol marks a value that is not known yet, and one that is a secret."""


@dataclass
class Declared:
    """A resource as the program declares it; other resources are named by `TYPE NAME`."""

    type: str
    name: str
    parent: str
    inputs: dict[str, Any]
    provider: str
    after: set[str]
    protected: bool = False
    by_input: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """For each top-level input the resources that its value comes from."""
    ignored: list[str] = field(default_factory=list[str])
    """The inputs whose changes the program ignores."""
    replaced_for: list[str] = field(default_factory=list[str])
    """The inputs for whose changes the program has it made anew, whatever its provider would do."""

    @property
    def own_provider(self) -> str:
        """The provider that it is given, as `TYPE NAME`; "" where it has a default one."""
        provider = _named(self.provider.rpartition("::")[0]) if self.provider else ""
        return "" if provider.rpartition(" ")[2].startswith("default") else provider


@dataclass
class Declarations:
    """Everything that a program declares, by `TYPE NAME`, and the ids of what it reads.

    Both are in the order of their names, but each after all that it waits for. What waits for nothing is declared in another order each
    time, so no test shall see that order.
    """

    made: dict[str, Declared] = field(default_factory=dict[str, Declared])
    read: list[str] = field(default_factory=list[str])

    def of(self, kind: str) -> list[Declared]:
        return [each for each in self.made.values() if each.type == kind]

    def inputs_of(self, kind: str) -> list[dict[str, Any]]:
        return [each.inputs for each in self.of(kind)]

    def waits_for(self, name: str) -> set[str]:
        """All that must be there before `name` is: what it and its parents depend on, and so on."""
        found: set[str] = set()
        todo = [name]
        while todo:
            each = self.made.get(todo.pop())
            reached = (each.after | {each.parent}) - found if each else set[str]()
            found |= reached
            todo += reached
        return found

    def ordered(self) -> Declarations:
        """The same in the order that tests see."""
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
    """The id that a resource is given where it is said to be there already; `name` is `TYPE NAME`."""
    return f"<{name}>"


class Preview(MockMonitor):
    """Answers as the first preview of a stack is answered: with the inputs, and nothing that only the cloud knows."""

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

    def made(self, declared: Declared) -> tuple[str, dict[str, Any]]:  # noqa: ARG002 -- for those that make something
        """The id of a resource and what the cloud adds to its inputs; in a preview there is neither."""
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
    """Answers as a later preview is, as far as ids go: each resource has one, and a cluster its API server."""

    def made(self, declared: Declared) -> tuple[str, dict[str, Any]]:
        """The id, and what a cluster answers."""
        if declared.type.startswith(COMPONENTS):
            return "", {}
        identity = id_of(f"{declared.type} {declared.name}")
        return identity, _of_the_cluster(declared.type, identity, declared.inputs)


def _of_the_cluster(kind: str, identity: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """What a cluster answers about its API server, so that its kubeconfig is known; nothing of other resources."""
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
    """JSON as the protocol has it, with whole numbers as such and with marks instead of what is unknown or secret."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        # The order of a map of the protocol is no order.
        return {"$secret": True} if SECRET in fields.values() else {key: _plain(fields[key]) for key in sorted(fields)}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return {"$unknown": True} if value == UNKNOWN else value


def shipped(stack: str, **changes: Any) -> dict[str, Any]:
    return yaml.safe_load((STACKS / f"Pulumi.{stack}.yaml").read_text())["config"]["flexspot:platform"] | changes


def declared(stack: str, settings: dict[str, Any], monitor: Preview | None = None, *, there: bool = False) -> Declarations:
    """What the program declares for these settings: in a preview, or when resources are made by a monitor of the caller's.

    With `there` the resources have ids already, as in a later preview.
    """

    def program() -> None:
        pulumi.runtime.set_all_config({"flexspot:platform": json.dumps(settings)})
        main()

    return under_mocks(stack, program, monitor or (LaterPreview() if there else Preview()), preview=monitor is None)


def under_mocks(stack: str, program: Callable[[], object], monitor: Preview, *, preview: bool = True) -> Declarations:
    """What a program declares to a monitor."""
    pulumi.runtime.set_mocks(_NoMocks(), project="flexspot", stack=stack, preview=preview, monitor=monitor)

    @pulumi.runtime.test
    def run() -> None:
        program()

    # For each resource the SDK would read the source of all that called it, pytest's too, and write five messages: a quarter of the time,
    # for nobody.
    with mock.patch("pulumi.runtime.resource._get_stack_trace", source_pb2.StackTrace), mock.patch("pulumi.log.debug", _unsaid):
        run()
    return monitor.declarations.ordered()


def _unsaid(*_: object, **__: object) -> None:
    """A debug message that nobody hears."""


@functools.cache
def as_shipped(stack: str) -> Declarations:
    return declared(stack, shipped(stack))


@functools.cache
def plan_of(stack: str) -> Plan:
    settings = parse_settings(shipped(stack), stack)
    return build_plan(settings, stack, price_book_of(settings, STACKS, stack), image_book_of(settings, STACKS, stack))


def taints_of(written: list[dict[str, str]]) -> set[tuple[str, str, str]]:
    """Taints or tolerations, whichever way the cloud spells their effect."""
    return {(each["key"], each["value"], {"NO_SCHEDULE": "NoSchedule"}.get(each["effect"], each["effect"])) for each in written}
