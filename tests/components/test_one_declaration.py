"""Options that settings and component arguments share are declared once, in the settings, and docstrings have the right defaults."""

from __future__ import annotations

import ast
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
from flexspot.capacity.settings import pools
from flexspot.components.gke.gpu_pool_args import GkeNodeOptionsArgs
from flexspot.components.karpenter.ec2_node_class import EksNodeDiskArgs
from flexspot.components.kueue.controller import KueueControllerArgs
from flexspot.components.kueue.queues import TopologyArgs
from flexspot.components.shared_args import arguments, default_of

if TYPE_CHECKING:
    from types import ModuleType


def of_settings(module: ModuleType, arguments: str) -> type[DescribedRecord] | None:
    """Return the settings with the same options as some arguments, such as GkeNodeOptions for GkeNodeOptionsArgs."""
    found: object = vars(module).get(arguments.removesuffix("Args"))
    if not isinstance(found, type) or not issubclass(found, DescribedRecord):
        return None
    return found if found.model_fields.keys() == vars(module)[arguments].__annotations__.keys() else None


@pytest.mark.parametrize("arguments,model", [(GkeNodeOptionsArgs, pools.GkeNodeOptions), (EksNodeDiskArgs, pools.EksNodeDisk)])
def test_arguments_are_exactly_those_that_settings_declare(arguments: type[Any], model: type[DescribedRecord]) -> None:
    assert arguments.__annotations__.keys() == model.model_fields.keys()


def documented_defaults() -> list[tuple[str, str, str, object]]:
    """Return the module, the argument, the default in its docstring if it is a number or a word, and the actual default."""
    found: list[tuple[str, str, str, object]] = []
    for info in pkgutil.walk_packages(components.__path__, "flexspot.components."):
        module = importlib.import_module(info.name)
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for node in (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith("Args")):
            model, kind = of_settings(module, node.name), vars(module)[node.name]
            defaults = {name: model.default(name) for name in model.model_fields} if model else {}
            defaults |= {name: default_of(kind, name) for name in kind.__optional_keys__ if node.decorator_list}
            for declared, below in pairwise(node.body):
                if isinstance(declared, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                    documented = re.search(r"Default: ([\w.,/-]+?)\.(?:\s|$)", str(below.value.value))
                    name = ast.unparse(declared.target)
                    if documented and name in defaults:
                        found.append((info.name, name, documented[1], defaults[name]))
    return found


def as_written(value: object) -> set[str]:
    """Return the words by which a docstring may give a default."""
    if value is None or value in ([], (), {}):
        return {"none", "all"}
    number = {f"{value:,}", str(value)} if isinstance(value, int) else {str(value)}
    return {each.lower() for each in number}


def test_the_docstring_of_an_argument_has_its_default() -> None:
    found = documented_defaults()

    assert len(found) > 25
    wrong = [
        f"{module}.{name}: says {documented}, is {value!r}"
        for module, name, documented, value in found
        if documented.lower() not in as_written(value)
    ]
    assert wrong == []


def test_arguments_are_filled_from_record_fields_with_the_same_names() -> None:
    record = SimpleNamespace(pods_ready=ONE_BOOT, replicas=None, version=None, labels={})

    made = arguments(KueueControllerArgs, record, {"version": "0.19.2", "cpu_milli": 500}, existing=True)

    times = {"timeout_seconds": 2700, "recovery_seconds": 1800, "requeues": 10}
    assert made == {"existing": True, "pods_ready": times, "version": None, "cpu_milli": 500}
    with pytest.raises(TypeError, match="TopologyArgs requires name, in its arguments or in a source"):
        arguments(TopologyArgs, record, levels=("zone",))
    with pytest.raises(TypeError, match="TopologyArgs has no argument level; its arguments are labels, levels, name"):
        arguments(TopologyArgs, record, level="zone")
