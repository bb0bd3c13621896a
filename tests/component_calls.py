"""Calls of components by the programs of stacks, and the same calls over the wire from programs in other languages."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, NotRequired, Union, cast, get_args, get_origin, is_typeddict

import pulumi
from auto_mode_settings import auto_mode_settings
from autopilot_settings import autopilot_settings
from program_declarations import Preview, declared, shipped

from flexspot.components.hosting.host import Host, hosted
from flexspot.infra.declaring.components_page import offered

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from pulumi.provider.experimental.analyzer import PropertyDefinition

    Component = type[pulumi.ComponentResource]

WATCH = {"queueing": {"stock_outs": {"watch": True}}}
EFS = {"storage": {"checkpoints": "efs", "datasets": "lustre"}}


@functools.cache
def host() -> Host:
    return Host(offered())


@contextmanager
def recording(calls: dict[str, dict[str, dict[str, Any]]]) -> Generator[None]:
    """Record the arguments of every call of a component in `calls`, by component and resource name."""
    originals: dict[Component, Callable[..., None]] = {each: each.__init__ for each in hosted()}

    def noting(component: Component, original: Callable[..., None]) -> Callable[..., None]:
        def init(self: Any, name: str, args: Any, opts: pulumi.ResourceOptions | None = None) -> None:
            pulumi.Output.from_input(args).apply(lambda known: calls.setdefault(component.__name__, {}).setdefault(name, known))
            original(self, name, args, opts)

        return init

    for component, original in originals.items():
        setattr(component, "__init__", noting(component, original))  # noqa: B010 -- replaced during the recording
    try:
        yield
    finally:
        for component, original in originals.items():
            setattr(component, "__init__", original)  # noqa: B010 -- restored


class Made(Preview):
    """A preview with the answers of a cloud that has created everything. Its outputs have synthetic values."""

    def made(self, declared: Any) -> tuple[str, dict[str, Any]]:
        kubernetes = declared.type.startswith("kubernetes:")
        names = {each: f"{each}-of-{declared.name}" for each in ("arn", "email", "endpoint", "dnsName", "mountName", "url", "member")}
        return f"id-of-{declared.name}", {} if kubernetes else names | {"name": str(declared.inputs.get("name", declared.name))}


@functools.cache
def calls_of_stacks() -> Mapping[str, Mapping[str, dict[str, Any]]]:
    """Return the inputs with which the shipped stacks, and some with differently created clusters, call components."""
    eks = shipped("dev-eks")
    settings = [shipped(stack) for stack in ("dev-gke", "prod-gke", "dev-eks", "prod-eks", "local")]
    settings += [auto_mode_settings(), autopilot_settings(), eks | EFS | WATCH]
    calls: dict[str, dict[str, dict[str, Any]]] = {}
    with recording(calls):
        for each in settings:
            declared("test", each, Made())
    return calls


ROLE = "arn:aws:iam::111122223333:role/nlp"
QUEUE = "https://sqs.us-east-1.amazonaws.com/111122223333/work"
_AWS: dict[str, Any] = {"account": "111122223333", "region": "us-east-1"}
NAMED: dict[str, Any] = {"cluster": "platform", "cluster_name": "platform"}


def work(workload_class: str, **more: Any) -> dict[str, Any]:
    """Return arguments of a workload of a shipped production stack."""
    known = {"platform": shipped("prod-eks"), "name": "desk", "team": "search"}
    return known | ({"workload_class": workload_class, "image": "a:1"} if workload_class else {}) | more


OF_NO_STACK: dict[str, dict[str, Any]] = {
    "CheckpointedJob": work("training", pods=2, gpus=8, retries=5),
    "EfaPlacementGroup": {"cluster": "platform", "pool": "h100", "tags": {"owner": "ann"}},
    "EksTeamLogins": {"cluster_name": "prod", "groups": {ROLE: ["nlp"]}},
    "ExistingEksCluster": {"cluster": "lab", **_AWS},
    "ExistingClusterParts": {"addons": ["eks-pod-identity-agent"]},
    "ExistingGpuOperator": {"taints": []},
    "ExistingKarpenter": {"cluster": "lab", "kubernetes_version": "1.35", "deployment": "kube-system/karpenter"},
    "ExistingGkeCluster": {"cluster": "lab", "project": "acme-ai-dev", "region": "us-central1"},
    "FlexStartJob": work("training", platform=shipped("prod-gke"), team="nlp", gpus=4),
    "GkeRdmaNetworks": {"project": "acme-ai", "region": "us-central1", "zone": "us-central1-b", "network": "prod", "rdma_networks": 2},
    "GkeRdmaNodes": {
        "networks": ["prod-gvnic", "prod-rdma"],
        "subnetworks": ["prod-gvnic", "prod-rdma-0"],
        "rdma_networks": 1,
        "accelerators": ["nvidia-b200"],
        "labels": {"owner": "ann"},
    },
    "JobSetController": {"replicas": 1, "cpu_milli": 50},
    "LoadBalancerController": {**NAMED, **_AWS, "vpc_id": "vpc-0a1b2c3d4e5f60718", "tags": {}, "cpu_milli": 200},
    "ModelCache": work("", bucket="acme-models", cache_gib=20),
    "ModelServer": work("inference", max_replicas=4, drain_seconds=20),
    "NodeTerminationHandler": {},
    "Notebook": work("interactive", home_gib=10),
    "PubsubWorkQueue": {
        "queue": "images",
        "project": "acme-ai",
        "worker_member": "serviceAccount:w@acme-ai.iam.gserviceaccount.com",
        "grace_seconds": 15,
        "labels": {"team": "red"},
    },
    "QueueWorkers": work("best-effort", queue=QUEUE, keda=True, items_per_worker=5),
    "QueuedJob": work("training", platform=shipped("prod-gke"), team="nlp", gpus=8),
    "SqsWorkQueue": {"queue": "images", "worker_role_name": "red", **_AWS, "grace_seconds": 120, "tags": {"team": "red"}},
    "Topology": {"name": "network", "levels": ["topology.kubernetes.io/zone", "kubernetes.io/hostname"], "labels": {}},
}


def calls_of_all() -> dict[str, Mapping[str, dict[str, Any]]]:
    """Return calls of every component: those of stacks, and one for each component that no stack calls."""
    found = dict(calls_of_stacks())
    return found | {name: {"given": args} for name, args in OF_NO_STACK.items()}


def without(value: Any, hint: Any, dropped: Callable[[str], bool]) -> Any:
    """Return a value of the type `hint` without the optional arguments that `dropped` selects by TYPE.ARGUMENT, also in nested types."""
    within = [each for each in get_args(hint) if each is not NoneType]
    if get_origin(hint) in {NotRequired, Union, UnionType}:
        return without(value, within[0], dropped)
    if isinstance(value, dict) and is_typeddict(hint):
        hints = hint.__annotations__
        optional = {key for key in hints if key in hint.__optional_keys__ or NoneType in get_args(hints[key])}
        kept = {key: each for key, each in value.items() if key not in optional or not dropped(f"{hint.__name__}.{key}")}
        return {key: without(each, hints[key], dropped) for key, each in kept.items()}
    if isinstance(value, dict) and within:
        return {key: without(each, within[-1], dropped) for key, each in value.items()}
    return [without(each, within[0], dropped) for each in value] if isinstance(value, list) and within else value


def on_the_wire(component: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by the names of the schema, with every number as a float."""
    definition = host()._component_defs[component]  # noqa: SLF001 -- the SDK offers it nowhere else
    return _fields(args, definition.inputs, definition.inputs_mapping)


def _fields(args: Mapping[str, Any], properties: Mapping[str, PropertyDefinition], names: Mapping[str, str]) -> dict[str, Any]:
    given = {schema_name: args.get(name) for schema_name, name in names.items()}
    return {key: _value(value, properties[key]) for key, value in given.items() if value is not None}


def _value(value: Any, declared: PropertyDefinition) -> Any:
    if declared.ref is not None and declared.ref.startswith("#"):
        kind = host()._type_defs[declared.ref.rpartition(":")[2]]  # noqa: SLF001 -- likewise
        return _fields(value, kind.properties, kind.properties_mapping)
    if declared.items is not None:
        return [_value(each, declared.items) for each in value]
    if declared.additional_properties is not None:
        return {key: _value(each, declared.additional_properties) for key, each in value.items()}
    return floats(value)


def floats(value: Any) -> Any:
    """Return JSON as protobuf represents it: a whole number is a float."""
    if isinstance(value, dict):
        return {key: floats(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [floats(each) for each in cast("list[Any]", value)]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
