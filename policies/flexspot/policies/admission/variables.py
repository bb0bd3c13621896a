"""Variables that the policies share, and the names of rules.yaml.

The cost of CEL is limited to 1,000,000 for an expression or variable and 10,000,000 for a policy (k8s.io/apiserver v0.36.1,
pkg/apis/cel/config.go). A policy above that is skipped silently. So checkpoint paths are compared once with each mount of their container,
mounts are not compared with each other, and each variable does so for a few containers. tests/lab/test_admission_cost.py measures the cost
on an API server.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from flexspot.capacity.catalog import node_labels
from flexspot.capacity.catalog.accelerators import ON_EC2
from flexspot.policies.admission import cel, scheduling_options
from flexspot.policies.admission.cel import FEW_PLACES, MOST_PLACES, either, mapping, places, places_between, text
from flexspot.policies.admission.pods import containers_where, pod_sets, pod_templates, queued_metadata
from flexspot.policies.admission.written import Names, read, terms_of
from flexspot.policies.inventory import gpu_machines, pod_gpus
from flexspot.policies.inventory.gpu_machines import EC2_FAMILY, GCE_MACHINE, GKE_LABELS, PREFIXES
from flexspot.policies.inventory.pod_gpus import POOL_LABELS
from flexspot.policies.inventory.reading import gke
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.pods import placement
from flexspot.policies.pods import scheduling_options as labels
from flexspot.policies.pods.scheduling_options import SPOT_LABELS
from flexspot.policies.rules import gke_pools, gpu_requests, interruptions, objects, queued_work, quotas, storage
from flexspot.policies.rules.storage import checkpoint_on_ephemeral_volume

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flexspot.policies.judging import Settings

TEXT: Final = read("rules.yaml")

MODULES = (
    *(cel, node_labels, scheduling_options, labels, placement, pod_gpus, gpu_machines, gke),
    *(gke_pools, gpu_requests, interruptions, objects, quotas, storage, queued_work),
)
"""Modules whose constants rules.yaml names. A test keeps two constants of one name out."""

_OF_DEVICES = {f"{prefix}{kind.instance_label}-": kind for prefix in PREFIXES for kind in ON_EC2}
"""Prefixes of Karpenter's labels that describe the devices of a kind."""

NAMES: Final = Names(
    facts={name: value for module in MODULES for name, value in vars(module).items() if name.isupper()}
    | {
        "POOL_LABELS": sorted(POOL_LABELS),
        "spotLabels": {key: sorted(values) for key, values in SPOT_LABELS.items()},
        "gkeSpotLabels": sorted(key for key in SPOT_LABELS if key.startswith("cloud.google.com/")),
        "gkeLabels": tuple(GKE_LABELS),
        "devicePrefixes": tuple(_OF_DEVICES),
        "deviceMakers": {f"{prefix}manufacturer": kind.manufacturer for prefix, kind in _OF_DEVICES.items()},
        "deviceNames": tuple(f"{prefix}name" for prefix in _OF_DEVICES),
        "ec2Family": f"^(?:{EC2_FAMILY})$",
        "gceMachine": f"^(?:{GCE_MACHINE})$",
    },
    terms=terms_of(TEXT["terms"]) | {"queuedAnnotations": ([], queued_metadata("annotations"))},
    functions={"places": places, "containers": containers_where},
)

_MOST_ARGUMENTS = 256
"""Arguments of a container that are looked at."""

_AT_ONCE = 4
"""Containers whose paths a single variable compares with their mounts, within the cost limit for a hundred paths and sixty mounts."""


def shared_variables(facts: Mapping[str, str], settings: Settings = DEFAULTS) -> dict[str, str]:
    """Return all variables that policies share, each after those that it uses."""
    checkpoints = settings.parameters(checkpoint_on_ephemeral_volume)
    spelled = dict.fromkeys(re.sub(r"[-_]", "", name.rpartition(".")[2]).lower() for name in checkpoints.texts("names"))
    says = either(*(f"m.mountPath.lowerAscii().contains({text(word)})" for word in checkpoints.texts("path-words")))
    names = replace(NAMES.but(spelled=list(spelled)), terms={**NAMES.terms, "saysCheckpoints": ([], says)})
    found = {
        "places": places_between(0, MOST_PLACES),
        "fewPlaces": places_between(0, FEW_PLACES),
        # Indexes of a list of arguments, which may be long.
        "manyPlaces": places_between(0, _MOST_ARGUMENTS),
        "podSets": pod_sets(),
        "oldPodSets": pod_templates("oldObject"),
        "queueLabels": queued_metadata("labels"),
        "facts": mapping(facts),
    }
    previous = "checkpointWriters"
    for name, written in TEXT["variables"].items():
        expression = names.cel(written)
        if name == "checkpointsLost":
            for first in range(0, MOST_PLACES, _AT_ONCE):
                some = places_between(first, first + _AT_ONCE)
                found[f"{name}{first}"] = expression.replace("PREVIOUS", previous).replace("PLACES", some)
                previous = f"{name}{first}"
        else:
            found[name] = expression.replace("PREVIOUS", previous).replace("FEW", str(_AT_ONCE))
    return found


_USED = re.compile(r"\bvariables\.(\w+)")


def used_by(expressions: Iterable[str], known: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return those of the known variables that expressions need, in their order."""
    names: set[str] = set()
    todo = list(expressions)
    while todo:
        found = {name for name in _USED.findall(todo.pop()) if name in known} - names
        names |= found
        todo += [known[name] for name in found]
    return [(name, expression) for name, expression in known.items() if name in names]
