"""What a setting and a component's argument have in common is declared once, in the settings; arguments say of themselves what holds."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import re
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from flexspot import components
from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.plan.kueue_configuration import ONE_BOOT
from flexspot.capacity.settings import cluster, network, platform, pools
from flexspot.components.eks import cluster_args as eks_cluster
from flexspot.components.eks import network as eks_network
from flexspot.components.gke import cluster_args as gke_cluster
from flexspot.components.gke.gpu_pool_args import GkeNodeOptionsArgs
from flexspot.components.karpenter.ec2_node_class import EksNodeDiskArgs
from flexspot.components.kueue.controller import KueueControllerArgs
from flexspot.components.kueue.queues import TopologyArgs
from flexspot.components.shared_args import arguments

if TYPE_CHECKING:
    from types import ModuleType

SAME: list[tuple[type[Any], str, type[DescribedRecord], str]] = [
    (gke_cluster.GkeSystemPoolShape, "min_nodes", cluster.SystemPool, "min_nodes"),
    (gke_cluster.GkeSystemPoolShape, "max_nodes", cluster.SystemPool, "max_nodes"),
    (gke_cluster.GkeClusterShape, "control_plane_cidr", network.GkeNetworkSettings, "control_plane_cidr"),
    (gke_cluster.GkeClusterShape, "release_channel", cluster.GkeClusterSettings, "release_channel"),
    (gke_cluster.GkeClusterShape, "mode", cluster.GkeClusterSettings, "mode"),
    (gke_cluster.GkeClusterShape, "max_pods_per_node", network.GkeNetworkSettings, "max_pods_per_node"),
    (gke_cluster.GkeClusterShape, "managed_prometheus", platform.Observability, "managed_prometheus"),
    (eks_cluster.EksSystemPoolShape, "min_nodes", cluster.SystemPool, "min_nodes"),
    (eks_cluster.EksSystemPoolShape, "max_nodes", cluster.SystemPool, "max_nodes"),
    (eks_cluster.EksClusterShape, "support", cluster.EksClusterSettings, "support"),
    (eks_cluster.EksClusterShape, "log_retention_days", cluster.EksClusterSettings, "log_days"),
    (eks_network.NetworkShape, "nat", network.EksNetworkSettings, "nat"),
]
"""An argument that a setting is handed on to, where both have a default. `access` has none: it follows from who makes the network."""


def default_of(filled_in: type[Any], name: str) -> object:
    [field] = [field for field in dataclasses.fields(filled_in) if field.name == name]
    return field.default_factory() if field.default is dataclasses.MISSING and callable(field.default_factory) else field.default


@pytest.mark.parametrize("filled_in,argument,model,setting", SAME, ids=lambda each: each if isinstance(each, str) else each.__name__)
def test_a_component_used_alone_has_the_default_of_the_setting(
    filled_in: type[Any], argument: str, model: type[DescribedRecord], setting: str
) -> None:
    assert default_of(filled_in, argument) == model.default(setting)


def test_maintenance_is_at_the_hour_of_the_settings() -> None:
    assert default_of(gke_cluster.GkeClusterShape, "maintenance") == {}, "what is not there is as in the settings"


def of_settings(module: ModuleType, arguments: str) -> type[DescribedRecord] | None:
    """The settings that arguments have in common with stacks: GkeNodeOptions for GkeNodeOptionsArgs."""
    found: object = vars(module).get(arguments.removesuffix("Args"))
    if not isinstance(found, type) or not issubclass(found, DescribedRecord):
        return None
    return found if found.model_fields.keys() == vars(module)[arguments].__annotations__.keys() else None


@pytest.mark.parametrize("arguments,model", [(GkeNodeOptionsArgs, pools.GkeNodeOptions), (EksNodeDiskArgs, pools.EksNodeDisk)])
def test_arguments_that_settings_declare_are_all_there_and_no_others(arguments: type[Any], model: type[DescribedRecord]) -> None:
    assert arguments.__annotations__.keys() == model.model_fields.keys()


def documented_defaults() -> list[tuple[str, str, str, object]]:
    """Module, argument, the default that its docstring gives as a number or a word, and the default itself."""
    found: list[tuple[str, str, str, object]] = []
    for info in pkgutil.walk_packages(components.__path__, "flexspot.components."):
        module = importlib.import_module(info.name)
        own = [each for each in vars(module).values() if dataclasses.is_dataclass(each) and getattr(each, "__module__", "") == info.name]
        defaults = {
            field.name: default_of(each, field.name)
            for each in own
            if isinstance(each, type)
            for field in dataclasses.fields(each)
            if field.default is not dataclasses.MISSING
        }
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for node in (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith("Args")):
            if model := of_settings(module, node.name):
                defaults |= {name: model.default(name) for name in model.model_fields}
            for declared, below in pairwise(node.body):
                if isinstance(declared, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                    said = re.search(r"Default: ([\w.,/-]+?)\.(?:\s|$)", str(below.value.value))
                    name = ast.unparse(declared.target)
                    if said and name in defaults:
                        found.append((info.name, name, said[1], defaults[name]))
    return found


def as_written(value: object) -> set[str]:
    """The words in which a docstring may give a default."""
    if value is None or value in ([], (), {}):
        return {"none", "all"}
    number = {f"{value:,}", str(value)} if isinstance(value, int) else {str(value)}
    return {each.lower() for each in number}


def test_what_the_docstring_of_an_argument_says_is_its_default() -> None:
    found = documented_defaults()

    assert len(found) > 25
    wrong = [f"{module}.{name}: says {said}, is {value!r}" for module, name, said, value in found if said.lower() not in as_written(value)]
    assert wrong == []


def test_arguments_are_the_fields_of_records_that_have_their_names() -> None:
    record = SimpleNamespace(pods_ready=ONE_BOOT, replicas=None, version=None, labels={})

    made = arguments(KueueControllerArgs, record, {"version": "0.19.0", "cpu_milli": 500}, existing=True)

    times = {"timeout_seconds": 2700, "recovery_seconds": 1800, "requeues": 10}
    assert made == {"existing": True, "pods_ready": times, "version": None, "cpu_milli": 500}
    with pytest.raises(TypeError, match="TopologyArgs needs name; no source has it"):
        arguments(TopologyArgs, record, levels=("zone",))
    with pytest.raises(TypeError, match="TopologyArgs has no level; it has labels, levels, name"):
        arguments(TopologyArgs, record, level="zone")
