"""What a pod has to do with GPUs, and where its containers say that they write checkpoints, in CEL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from capacity.catalog.node_labels import GKE_ACCELERATOR_LABEL, GPU_RESOURCE
from policies.admission.cel import (
    either,
    every,
    first_of,
    is_positive,
    let,
    list_at,
    mapping_at,
    optional,
    places,
    sentence,
    text,
    text_at,
    texts,
)
from policies.inventory.gpu_machines import (
    AMD_FAMILY,
    EC2_CATEGORIES,
    EC2_FAMILY,
    GCE_MACHINE,
    MACHINE_FAMILY_LABEL,
    MACHINE_LABELS,
    PREFIXES,
)
from policies.inventory.pod_gpus import GPU_PREFIXES, GPU_RUNTIME, POOL_LABELS, SYSTEM_NAMESPACE, SYSTEM_PRIORITY
from policies.pods.volumes import IN_CONTAINER, IN_VOLUME, MOUNTED, NAMED
from policies.rules.checkpoint_on_ephemeral_volume import LOST, RULE

if TYPE_CHECKING:
    from collections.abc import Mapping


_CONTAINERS = ("initContainers", "containers")
_AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")

ALL_CONTAINERS = "(" + " + ".join(list_at("p.pod", field) for field in _CONTAINERS) + ")"
"""The containers of `p`, those that prepare it included."""

SERVES_NODES = either(
    f"request.?namespace.orValue('') == {text(SYSTEM_NAMESPACE)}",
    f"{text_at('p.pod', 'priorityClassName')}.startsWith({text(SYSTEM_PRIORITY)})",
)
"""Whether `p` may sit on GPU nodes without a GPU."""


def containers_where(condition: str, value: str = "NAME") -> str:
    """A text for each container of `p` for which a condition holds, in order; by default what a sentence calls it.

    Both are CEL in which CONTAINER stands for the container and NAME for what it is called.
    """
    found: list[str] = []
    for field in _CONTAINERS:
        listed = list_at("p.pod", field)
        container = f"p.pod.{field}[i]"
        name = f"('container ' + {container}.?name.orValue({text(field + '[')} + string(i) + ']'))"
        here, made = (each.replace("CONTAINER", container).replace("NAME", name) for each in (condition, value))
        found.append(f"{places(listed)}.filter(i, {here}).map(i, {made})")
    return f"({' + '.join(found)})"


def _is_gpu(resource: str) -> str:
    return either(*(f"{resource}.startsWith({text(prefix)})" for prefix in GPU_PREFIXES))


ASKS = either(
    f"{ALL_CONTAINERS}.exists(c, {mapping_at('c', 'resources', 'limits')}"
    f".exists(k, ({_is_gpu('k')}) && {is_positive('c.resources.limits[k]')}))",
    f"size({list_at('p.pod', 'resourceClaims')}) > 0",
)
"""Whether a container of `p` has a limit on GPUs, whole, shared or sliced, or `p` a claim on devices (DRA)."""

UNBACKED = containers_where(
    f"{optional('CONTAINER', 'resources', 'requests')}[?{text(GPU_RESOURCE)}].hasValue() && "
    f"!{optional('CONTAINER', 'resources', 'limits')}[?{text(GPU_RESOURCE)}].hasValue()"
)
"""The containers of `p` that request GPUs without a limit."""


def _starts(expression: str, *endings: str) -> str:
    return either(*(f"{expression}.startsWith({text(prefix + ending)})" for prefix in PREFIXES for ending in endings))


def _one_of(expression: str, *endings: str) -> str:
    return f"{expression} in {texts(prefix + ending for prefix in PREFIXES for ending in endings)}"


def _names_gpus(key: str) -> str:
    """Whether only nodes with accelerators carry a label."""
    own = f"{key} == {text(GPU_RESOURCE)} || {key}.startsWith({text(GPU_RESOURCE + '.')})"
    return either(f"{key} == {text(GKE_ACCELERATOR_LABEL)}", own, _starts(key, "gpu-"))


def _means_gpu(key: str, value: str) -> str:
    """Whether this value of a label means nodes with NVIDIA's GPUs."""
    family = every(f"{value}.matches({text(f'^(?:{EC2_FAMILY})$')})", f"!{value}.startsWith({text(AMD_FAMILY)})")
    machine_family = family.replace(value, f"{value}.split('.')[0]")
    machine = f"{value}.contains('.') ? ({machine_family}) : {value}.matches({text(f'^(?:{GCE_MACHINE})$')})"
    return first_of(
        (f"{key} == {text(GKE_ACCELERATOR_LABEL)}", "true"),
        (f"{key} == {text(GPU_RESOURCE)} || {key}.startsWith({text(GPU_RESOURCE + '.')})", f"!({value} in ['false', '0'])"),
        (_one_of(key, "gpu-manufacturer"), f"{value} == 'nvidia'"),
        (_one_of(key, "gpu-name"), f"!{value}.startsWith('radeon')"),
        (_starts(key, "gpu-"), f"{value} != '0'"),
        (f"{key} in {texts(MACHINE_LABELS)}", machine),
        (f"{key} == {text(MACHINE_FAMILY_LABEL)}", f"({value} + '-any').matches({text(f'^(?:{GCE_MACHINE})$')})"),
        (_one_of(key, "family"), family),
        (_one_of(key, "category"), f"{value} in {texts(EC2_CATEGORIES)}"),
        otherwise="false",
    )


_SELECTOR = mapping_at("p.pod", "nodeSelector")
_SELECTED = f"{_SELECTOR}.filter(k, {_means_gpu('k', 'string(p.pod.nodeSelector[k])')})"
_VALUES = list_at("e", "values")
_DEMANDS = first_of(
    (f"{text_at('e', 'key')} == {text(GKE_ACCELERATOR_LABEL)}", f"{text_at('e', 'operator')} in ['In', 'Exists', 'Gt', 'Gte']"),
    (
        f"{text_at('e', 'operator')} == 'In'",
        f"size({_VALUES}) > 0 && {_VALUES}.all(v, {_means_gpu(text_at('e', 'key'), 'v')})",
    ),
    (_names_gpus(text_at("e", "key")), f"{text_at('e', 'operator')} in ['Exists', 'Gt', 'Gte']"),
    otherwise="false",
)
"""Whether an expression `e` of a node affinity allows nothing but GPU machines."""
_TERMS = list_at("p.pod", *_AFFINITY)

TOLERATES = (
    f"{list_at('p.pod', 'tolerations')}.exists(t, {text_at('t', 'key')} == {text(GPU_RESOURCE)}"
    f" && {text_at('t', 'effect')} != 'PreferNoSchedule')"
)
"""Whether `p` names the taint of GPU nodes in a toleration."""

_OTHERWISE = first_of(
    (f"size({_TERMS}) > 0 && {_TERMS}.all(t, {list_at('t', 'matchExpressions')}.exists(e, {_DEMANDS}))", "'node affinity'"),
    (f"{text_at('p.pod', 'runtimeClassName')} == {text(GPU_RUNTIME)}", "'runtimeClassName'"),
    (
        f"{_SELECTOR}.exists(k, k in {texts(sorted(POOL_LABELS))}) && {TOLERATES}",
        "'a selector of a pool and a toleration of its GPU taint'",
    ),
)
PLACED_BY = let("keys", _SELECTED, first_of(("size(keys) > 0", sentence("nodeSelector {key}", key="keys[0]")), otherwise=_OTHERWISE))
"""The field that lets `p` run nowhere but on GPU nodes; empty where none does."""


_DEFAULTS = RULE.defaults()


def _pair(first: str, second: str) -> str:
    """A list of two texts. The API server, unlike other evaluators, takes none of which it knows one's type and not the other's."""
    return f"[dyn({first}), dyn({second})]"


def _ends_with(sort: str, end: str) -> str:
    return sentence(IN_VOLUME, volume=text_at("v", "name"), sort=text(sort), end=text(end))


# A volume of no sort is an emptyDir.
_VOLUME_ENDS = first_of(
    (either("has(v.emptyDir)", "v.all(k, k == 'name')"), _ends_with("emptyDir", "pod")),
    ("has(v.ephemeral)", _ends_with("ephemeral", "pod")),
    ("has(v.hostPath)", _ends_with("hostPath", "node")),
)
_VOLUMES = f"{list_at('p.pod', 'volumes')}.map(v, {_pair(text_at('v', 'name'), _VOLUME_ENDS)})"

_MOUNT_ENDS = f"(p.volumes.filter(v, v[0] == {text_at('m', 'name')}).map(v, v[1]) + [''])[0]"
_MOUNTS = f"{list_at('CONTAINER', 'volumeMounts')}.filter(m, m.?mountPath.hasValue()).map(m, {_pair('m.mountPath', _MOUNT_ENDS)})"
_NEXT = _pair("a[j]", "j + 1 < size(a) ? a[j + 1] : ''")
_IN_ONE = _pair("a[j].substring(0, a[j].indexOf('='))", "a[j].substring(a[j].indexOf('=') + 1)")
_ARGUMENT = f"a[j].contains('=') ? {_IN_ONE} : {_NEXT}"
_BY_ARGUMENTS = let(
    "a",
    f"{list_at('CONTAINER', 'command')} + {list_at('CONTAINER', 'args')}",
    f"variables.places.filter(j, j < size(a) && a[j].startsWith('-')).map(j, {_ARGUMENT})",
)
_BY_VARIABLES = f"{list_at('CONTAINER', 'env')}.filter(v, v.?name.hasValue() && v.?value.hasValue()).map(v, {_pair('v.name', 'v.value')})"
_CONTAINER = f"{{'name': dyn(NAME), 'mounts': dyn({_MOUNTS}), 'given': dyn({_BY_ARGUMENTS} + {_BY_VARIABLES})}}"

_WRITING_CONTAINERS = containers_where("true", _CONTAINER)

_WORDS = either(*(f"m[0].lowerAscii().contains({text(word)})" for word in _DEFAULTS.texts("path-words")))
_SPELLED = texts(dict.fromkeys(re.sub(r"[-_]", "", name.rpartition(".")[2]).lower() for name in _DEFAULTS.texts("names")))
_PLAIN_NAME = "g[0].substring(g[0].lastIndexOf('.') + 1).replace('-', '').replace('_', '').lowerAscii()"
_NAMES_FILE = f"g[1].matches({text(r'[^/]+[.][^/.]+/*$')})"

_BELOW = "(m[0].endsWith('/') ? m[0] : m[0] + '/')"
_ABOVE = f"c.mounts.filter(m, (g[1] + '/').startsWith({_BELOW}))"
# Of the mounts above it the nearest decides.
_NEAREST = "above.filter(m, above.all(o, size(o[0]) <= size(m[0])))[0][1]"
_PATH_ENDS = let("above", _ABOVE, first_of(("size(above) > 0", _NEAREST), otherwise=text(IN_CONTAINER)))

_MOUNTED = sentence(LOST, place=sentence(MOUNTED, where="p.where", path="m[0]", container="c.name"), ends="m[1]")
_NAMED = sentence(LOST, place=sentence(NAMED, where="p.where", name="g[0]", container="c.name"), ends="ends")
_BY_MOUNT = f"c.mounts.filter(m, m[1] != '' && ({_WORDS})).map(m, {_MOUNTED})"
_JUDGED = every(f"{_PLAIN_NAME} in {_SPELLED}", "g[1].startsWith('/')", f"!{_NAMES_FILE}")
_BY_NAME = f"c.given.filter(g, {_JUDGED}).map(g, {let('ends', _PATH_ENDS, first_of(('ends != ' + text(''), _NAMED)))})"
_OF_CONTAINER = f"({_BY_MOUNT} + {_BY_NAME}).filter(s, s != '')"

PLACES = "checkpointPlaces"
"""The variable with a list for each pod set of GPU work: of each container that loses checkpoints, how it does, in the rule's words."""

VARIABLES: Mapping[str, str] = {
    "volumeEnds": f"variables.gpuWork.map(p, {{'where': dyn(p.where), 'pod': dyn(p.pod), 'volumes': dyn({_VOLUMES})}})",
    "checkpointMounts": f"variables.volumeEnds.map(p, {{'where': dyn(p.where), 'containers': dyn({_WRITING_CONTAINERS})}})",
    PLACES: f"variables.checkpointMounts.map(p, p.containers.map(c, {_OF_CONTAINER}).filter(l, size(l) > 0).map(l, l[0]))",
}
