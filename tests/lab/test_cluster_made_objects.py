"""Objects and fields that a real control plane and its controllers create, compared with the stacks' declarations.

With the official provider a creation is a POST, which fails on an existing object. So each object of a stack is posted here, in the order
in which the program declares it, after Kubernetes has created its own in the new namespaces. When the controllers have finished, no field
of the program belongs to another manager. Otherwise each `up` would fight over it (docs/decisions/0019-who-owns-a-field.md). That no stack
declares an object of the list is tested by tests/infra/test_cluster_made_names.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from cluster_made import maker_of
from engine_steps import Operation, steps
from kubernetes.client.exceptions import ApiException
from program_declarations import as_shipped, declared
from server_questions import integers
from setting_edits import ROOTS, edits_of
from stack_changes import deployed, reviewed

from flexspot.lab.cluster import Cluster, condition, read_objects, wait_until_established

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from setting_edits import Edit

    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.control_plane import LabControlPlane
    from flexspot.lab.tools.build import Tools

pytestmark = [
    pytest.mark.lab,
    pytest.mark.nightly(
        tested_by="test_no_stack_declares_what_others_create, test_up_deploys_everything_then_changes_nothing_and_destroy_leaves_nothing"
    ),
]

TESTS = Path(__file__).resolve().parents[1]
# The dev stacks have objects of the same kinds.
STACKS = ("local", "prod-gke", "prod-eks")

NAMESPACE = "v1/Namespace"
QUEUE = "kueue.x-k8s.io/v1beta2/ClusterQueue"
LOCAL_QUEUE = "kueue.x-k8s.io/v1beta2/LocalQueue"
QUOTA = "v1/ResourceQuota"
CLAIM = "v1/PersistentVolumeClaim"

# Kinds of which Kubernetes or a cloud creates objects, in addition to those that stacks declare.
OTHERS = (
    *("v1/ConfigMap", "v1/ServiceAccount", "v1/Service", "v1/Endpoints", "v1/Secret", "coordination.k8s.io/v1/Lease"),
    *("discovery.k8s.io/v1/EndpointSlice", "scheduling.k8s.io/v1/PriorityClass", "storage.k8s.io/v1/StorageClass"),
    *(f"rbac.authorization.k8s.io/v1/{kind}" for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")),
    *(f"flowcontrol.apiserver.k8s.io/v1/{kind}" for kind in ("FlowSchema", "PriorityLevelConfiguration")),
)


def kind_of(each: KubeObject) -> str:
    return f"{each['apiVersion']}/{each['kind']}"


LATER = {"securityGroupSelectorTerms": "sg-0a1b2c3d4e5f60718"}
"""Placeholders for values that only the cloud knows, by the field above them, where a definition requires a format."""


def known(value: Any, later: str = "known-later") -> Any:
    """Return the inputs of a first preview with a name instead of values that only the cloud knows."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return later if fields == {"$unknown": True} else {key: known(each, LATER.get(key, later)) for key, each in fields.items()}
    return [known(each, later) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def objects_of(stack: str) -> list[KubeObject]:
    """Return the Kubernetes objects of a shipped stack in the order in which the program declares them, without charts."""
    created = as_shipped(stack).made.values()
    return [known(each.inputs) for each in created if each.type.startswith("kubernetes:") and "kind" in each.inputs]


@pytest.fixture(scope="module")
def fresh(stack_lab: LabControlPlane, tools: Tools) -> dict[str, set[tuple[str, str]]]:
    """Return the objects on a control plane before any deployment, by kind, as (name, namespace); in a new namespace, too.

    Afterwards the server has the kinds that the clouds add.
    """
    on_lab = Cluster(stack_lab.home.kubeconfig)
    kinds = {kind_of(each) for stack in STACKS for each in objects_of(stack)}
    on_lab.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "brand-new"}})
    wait_for_default_objects(on_lab, ["brand-new"])
    rebuilt = [TESTS / "components" / "gke" / "compute_class_crd.yaml", TESTS / "components" / "measurement" / "monitoring_crds.yaml"]
    definitions = read_objects(*rebuilt, *tools.assets("karpenter-aws", "crds"))
    on_lab.apply(*definitions)
    wait_until_established(on_lab, [each["metadata"]["name"] for each in definitions])
    listed = {kind: {placed(each) for each in on_lab.list(kind)} for kind in sorted({*kinds, *OTHERS})}
    delete_and_wait(on_lab, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "brand-new"}}])
    return listed


@pytest.fixture
def on_lab(stack_lab: LabControlPlane, fresh: dict[str, set[tuple[str, str]]]) -> Cluster:
    assert fresh
    return Cluster(stack_lab.home.kubeconfig)


def placed(each: KubeObject) -> tuple[str, str]:
    return each["metadata"]["name"], each["metadata"].get("namespace", "")


def wait_for_default_objects(cluster: Cluster, namespaces: Iterable[str]) -> None:
    """Return when the controllers have created their objects in each namespace."""
    for namespace in namespaces:
        for kind, name in (("v1/ServiceAccount", "default"), ("v1/ConfigMap", "kube-root-ca.crt")):

            def there(found: list[KubeObject], name: str = name) -> bool:
                return name in {each["metadata"]["name"] for each in found}

            cluster.wait_for(kind, there, f"{name} in {namespace}", namespace=namespace)


def wait_for_controllers(cluster: Cluster, objects: list[KubeObject]) -> None:
    """Return when queues are active, quotas are counted and claims are bound."""
    for kind in (QUEUE, LOCAL_QUEUE, QUOTA, CLAIM):
        names = {placed(each) for each in objects if kind_of(each) == kind}

        def all_done(found: list[KubeObject], names: set[tuple[str, str]] = names) -> bool:
            return all(is_done(each) for each in found if placed(each) in names)

        cluster.wait_for(kind, all_done, f"the controllers' part in {kind}")


def is_done(each: KubeObject) -> bool:
    """Return whether a queue is active, a quota counted, a claim bound."""
    status: KubeObject = each.get("status", {})
    return condition(each, "Active") is not None or bool(status.get("used")) or status.get("phase") == "Bound"


def delete_and_wait(cluster: Cluster, objects: list[KubeObject]) -> None:
    """Delete objects, and return when they are gone: the next stack has some with the same name."""
    namespaces = {each["metadata"]["name"] for each in objects if each["kind"] == "Namespace"}
    # Namespaced objects are deleted with their namespace.
    alone = [each for each in objects if each["metadata"].get("namespace") not in namespaces]
    for each in reversed(alone):
        cluster.delete(kind_of(each), *placed(each))
    for kind in dict.fromkeys(map(kind_of, alone)):
        names = {placed(each) for each in alone if kind_of(each) == kind}

        def gone(found: list[KubeObject], names: set[tuple[str, str]] = names) -> bool:
            return not names & {placed(each) for each in found}

        cluster.wait_for(kind, gone, f"the deletion of {', '.join(name for name, _ in sorted(names))}")


def test_all_objects_of_a_fresh_control_plane_are_on_the_list_of_those_that_others_create(fresh: dict[str, set[tuple[str, str]]]) -> None:
    unlisted = {
        (kind, name, namespace)
        for kind, found in fresh.items()
        for name, namespace in found
        # The namespace that this test has created.
        if (kind, name) != (NAMESPACE, "brand-new") and maker_of(kind.rpartition("/")[2], name, namespace) is None
    }

    assert unlisted == set()
    assert fresh["v1/ServiceAccount"] >= {("default", "brand-new"), ("default", "kube-system")}
    assert sum(map(len, fresh.values())) > 100, "it is a whole control plane"


@pytest.mark.parametrize("stack", STACKS)
def test_every_object_of_a_stack_can_be_created_next_to_kubernetes_own_and_keeps_its_fields(stack: str, on_lab: Cluster) -> None:
    objects = objects_of(stack)
    posted: dict[tuple[str, str, str], KubeObject] = {}
    try:
        for each in objects:
            # A POST, like the official provider's: AlreadyExists if the object exists.
            posted[kind_of(each), *placed(each)] = on_lab.create(each)
            if each["kind"] == "Namespace":
                wait_for_default_objects(on_lab, [each["metadata"]["name"]])
        wait_for_controllers(on_lab, objects)

        found: dict[str, set[str]] = {}
        for each in objects:
            created = posted[kind_of(each), *placed(each)]
            now = on_lab.get(kind_of(each), each["metadata"]["name"], each["metadata"].get("namespace"))
            assert now is not None
            ours = {entry["manager"] for entry in created["metadata"]["managedFields"]}
            for manager, path in fields_of_others(now, each, ours):
                found.setdefault(f"{kind_of(each)} {path}", set()).add(manager)
        refused = refused_edits(on_lab, stack)
    finally:
        delete_and_wait(on_lab, objects)

    assert found == {}
    assert len(posted) == len(objects)
    assert refused == {}


def rows_of(cloud: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the reviewed effects of each edit of a cloud's settings, by setting, without the local stack."""
    for setting, rows in reviewed(cloud).items() if cloud in ROOTS else ():
        yield from ((setting, row) for row in rows if isinstance(rows, list))


def edits_in_place(stack: str) -> list[Edit]:
    """Return edits of a stack that change its objects in place: for each field that any of them changes, the first one that does."""
    cloud = stack.rpartition("-")[2]
    fields: set[str] = set()
    found: list[Edit] = []
    for setting, row in rows_of(cloud):
        changed = set[str](row.get("changes in place", ()) if row["stack"] == stack else ())
        if not changed <= fields:
            fields |= changed
            found += [each for each in edits_of(cloud, setting) if each.words == row["edit"]]
    return found


def refused_edits(cluster: Cluster, stack: str) -> dict[str, str]:
    """Return, by edit, the API server's refusals of objects that an edit of the stack would change in place.

    Objects with refused changes must be replaced, or `up` stops halfway: a PriorityClass's value was once changed in place.
    """
    found: dict[str, str] = {}
    for edit in edits_in_place(stack):
        before, after = deployed(stack), declared(stack, edit.applied(), there=True)
        for step in steps(before, after).of(Operation.UPDATE):
            new = after.made[step.name]
            if new.type.startswith("kubernetes:") and "kind" in new.inputs:
                change = merge_patch(integers(before.made[step.name].inputs), integers(new.inputs))
                try:
                    cluster.patch(kind_of(new.inputs), placed(new.inputs)[0], change, new.inputs["metadata"].get("namespace"), dry_run=True)
                except ApiException as error:
                    found[f"{edit.words}: {step.name}"] = str(error.body)
    return found


def merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch (RFC 7396) that changes one object to another."""
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            patch[key] = merge_patch(old[key], cast("dict[str, Any]", value))
        elif value != old.get(key):
            patch[key] = value
    return patch


def fields_of_others(live: KubeObject, inputs: KubeObject, ours: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the inputs that a manager other than `ours` has set, as (manager, path)."""
    for entry in live["metadata"]["managedFields"]:
        if entry["manager"] not in ours:
            for path in shared(entry["fieldsV1"], inputs):
                yield entry["manager"], path


def shared(fields: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths where a leaf of managed fields (FieldsV1) meets a value."""
    for key, below in fields.items():
        sort, _, name = key.partition(":")
        if sort == "f" and isinstance(value, dict) and name in value:
            yield from _at(below, cast("dict[str, Any]", value)[name], f"{path}.{name}")
        elif sort == "k" and isinstance(value, list):
            wanted: dict[str, Any] = json.loads(name)
            for item in cast("list[dict[str, Any]]", value):
                if wanted.items() <= item.items():
                    yield from _at(below, item, f"{path}[{name}]")
        elif sort == "v" and isinstance(value, list) and json.loads(name) in value:
            yield f"{path.removeprefix('.')}[{name}]"


def _at(below: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    # A dot means that the manager owns the container itself, which applies to all that it had to create on the way.
    deeper = {key: each for key, each in below.items() if key != "."}
    if not deeper:
        yield path.removeprefix(".")
    else:
        yield from shared(deeper, value, path)
