"""What is only a part of an object: patches, what tests hold against a cluster, and what a page shows of an object."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final, cast

from policies.inventory.pod_gpus import ELEMENTS, ENTRIES, POD_MAKERS
from policies.lint.scope_links import is_kustomization

if TYPE_CHECKING:
    from collections.abc import Iterator


_PATCHES: Final = ("patches", "patchesStrategicMerge", "patchesJson6902")


def patch_files(path: str, value: dict[str, Any]) -> Iterator[str]:
    """The files that a kustomization takes as patches: parts of objects, which say nothing of what they leave out."""
    if not is_kustomization(path, value):
        return
    for patches in _PATCHES:
        listed = value.get(patches)
        for each in cast("list[Any]", listed) if isinstance(listed, list) else []:
            file = cast("dict[str, Any]", each).get("path") if isinstance(each, dict) else each
            # patchesStrategicMerge may hold a patch itself in a file's place.
            if isinstance(file, str) and "\n" not in file:
                yield posixpath.normpath(posixpath.join(posixpath.dirname(path), file))


_COMPARED: Final = ("assert", "error", "errors", "delete", "patch")
"""Operations of Chainsaw whose files are no whole objects. https://kyverno.github.io/chainsaw/latest/operations/ (2026-11-25)."""


def compared_files(path: str, value: dict[str, Any]) -> Iterator[str]:
    """The files that a test of Chainsaw or KUTTL holds against a cluster, as it names them: they may be patterns."""
    if str(value.get("apiVersion")).partition("/")[0] not in {"chainsaw.kyverno.io", "kuttl.dev"}:
        return
    waiting: list[Any] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += cast("list[Any]", each)
        elif isinstance(each, dict):
            for key, below in cast("dict[str, Any]", each).items():
                waiting.append(below)
                files = [cast("dict[str, Any]", below).get("file")] if isinstance(below, dict) else below
                if key in _COMPARED and isinstance(files, list):
                    yield from (
                        posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
                        for file in cast("list[Any]", files)
                        if isinstance(file, str)
                    )


_ASSERTION_FILE: Final = re.compile(r"^\d{2,}-errors?(?![a-z])|(?:^|[-_.])assert(?:ions?|s)?(?![a-z])|^chainsaw-errors?$")
"""How KUTTL and Chainsaw call such files: 00-assert.yaml, 01-errors.yaml, chainsaw-assert.yaml.

Sources: kudobuilder/kuttl, docs/testing/steps.md; https://kyverno.github.io/chainsaw/latest/test/spec/ (2026-11-25).
"""


def is_assertion_file(path: str) -> bool:
    """Whether a file's name says that a test holds it against a cluster."""
    stem, ending = posixpath.splitext(posixpath.basename(path).lower())
    return ending in {".yaml", ".yml"} and _ASSERTION_FILE.search(stem) is not None


PATCH_MARKS: Final = (b"$patch", b"$retainKeys", b"$setElementOrder/", b"$deleteFromPrimitiveList/")
"""https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md"""

_MARK_TEXTS: Final = tuple(mark.decode() for mark in PATCH_MARKS)


def is_patch(value: dict[str, Any]) -> bool:
    """Whether a key of it is for whoever merges it into another object."""
    waiting: list[Any] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += cast("list[Any]", each)
        elif isinstance(each, dict):
            fields = cast("dict[str, Any]", each)
            if any(key.startswith(_MARK_TEXTS) for key in fields):
                return True
            waiting += fields.values()
    return False


_NEEDED: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("autoscaling.x-k8s.io", "ProvisioningRequest"): ("spec.podSets",),
    ("cloud.google.com", "ComputeClass"): ("spec.priorities",),
    ("karpenter.k8s.aws", "EC2NodeClass"): ("spec.securityGroupSelectorTerms", "spec.subnetSelectorTerms"),
    ("karpenter.sh", "NodePool"): ("spec.template.spec.nodeClassRef", "spec.template.spec.requirements"),
    ("kueue.x-k8s.io", "ClusterQueue"): ("spec.resourceGroups",),
    ("kueue.x-k8s.io", "LocalQueue"): ("spec.clusterQueue",),
    ("", "PersistentVolumeClaim"): ("spec.accessModes", "spec.resources"),
    ("apps", "DaemonSet"): ("spec.selector",),
    ("apps", "Deployment"): ("spec.selector",),
    ("apps", "ReplicaSet"): ("spec.selector",),
    ("apps", "StatefulSet"): ("spec.selector",),
    ("policy", "PodDisruptionBudget"): ("spec.selector",),
}
"""Fields without which the API server takes no object of a kind, or without which nobody means one.

Of Karpenter 1.14.1 and its provider for AWS the definitions, of Kubernetes 1.36 the fields that api-conventions calls required;
`resourceGroups` is no required field, but a queue without any gives nothing.
"""


_ONE_NEEDED: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("karpenter.sh", "Provisioner"): ("spec.provider", "spec.providerRef"),
}
"""Fields of which one must be there: karpenter.sh/v0.31/concepts/provisioners (2026-11-26)."""


def is_fragment(value: dict[str, Any]) -> bool:
    """Whether an object lacks what its kind cannot be without, so that more of it is elsewhere. As pages show a NodePool's limits alone."""
    group = str(value.get("apiVersion")).rpartition("/")[0]
    kind = (group, str(value.get("kind")))
    if _missing(value, "metadata.name") and _missing(value, "metadata.generateName"):
        return True
    if any(_missing(value, path) for path in _NEEDED.get(kind, ())):
        return True
    if kind in _ONE_NEEDED and all(_missing(value, path) for path in _ONE_NEEDED[kind]):
        return True
    maker = POD_MAKERS.get(kind)
    return maker is not None and not any(_has_containers(value, path.split(".")) for path in maker.paths)


def _missing(value: Any, path: str) -> bool:
    for step in path.split("."):
        value = cast("dict[str, Any]", value).get(step) if isinstance(value, dict) else None
    return value is None or value in ([], {})


def _has_containers(value: Any, path: list[str]) -> bool:
    """Whether a pod at the path has a container with an image."""
    for place, step in enumerate(path):
        if step in {ELEMENTS, ENTRIES}:
            below = cast("dict[str, Any]", value).values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            return any(_has_containers(each, path[place + 1 :]) for each in cast("list[Any]", below))
        value = cast("dict[str, Any]", value).get(step) if isinstance(value, dict) else None
    listed = cast("dict[str, Any]", value).get("containers") if isinstance(value, dict) else None
    containers = cast("list[Any]", listed) if isinstance(listed, list) else []
    return bool(containers) and all(isinstance(each, dict) and "image" in each for each in containers)
