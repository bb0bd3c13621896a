"""Checkpoint places of pods, and whether they outlive the pods, in CEL. See flexspot.policies.rules.storage.

The cost of CEL is limited to 1,000,000 for an expression or variable and 10,000,000 for a policy (k8s.io/apiserver v0.36.1,
pkg/apis/cel/config.go). A policy above that is skipped silently. So each path is compared once with each mount of its container, mounts are
not compared with each other, and each variable does so for a few containers. tests/lab/test_admission_cost.py measures the cost on an API
server.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flexspot.policies.admission.cel import (
    FEW_PLACES,
    MOST_PLACES,
    either,
    every,
    first_of,
    let,
    list_at,
    places_between,
    sentence,
    text,
    text_at,
    texts,
)
from flexspot.policies.admission.pods import containers_where
from flexspot.policies.rules.storage import IN_CONTAINER, IN_VOLUME, LOST, MOUNTED, NAMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.policies.judging import Parameters


PLACES = "checkpointPlaces"
"""Name of the variable with a list for each pod set of GPU work: the reason why it loses checkpoints, in the rule's words, or nothing."""

_MOST_ARGUMENTS = 256
"""Arguments of a container that are looked at."""

_AT_ONCE = 4
"""Containers whose paths a single variable compares with their mounts, within the cost limit for a hundred paths and sixty mounts."""


def checkpoint_variables(parameters: Parameters) -> Iterator[tuple[str, str]]:
    """Yield the variable PLACES after its dependencies. They need the variables `gpuWork` and `places`."""
    # Index of a list of arguments, which may be long.
    yield "manyPlaces", places_between(0, _MOST_ARGUMENTS)
    # The pod's volumes that end with it or its node, and their names.
    ending = let(
        "ending",
        f"{list_at('p.pod', 'volumes')}.filter(v, {either(*(condition for condition, _ in _SORTS))})",
        f"{{'where': dyn(p.where), 'pod': dyn(p.pod), 'ending': dyn(ending), 'names': dyn(ending.map(v, {text_at('v', 'name')}))}}",
    )
    yield "checkpointVolumes", f"variables.gpuWork.map(p, {ending})"

    container = f"{{'name': dyn(NAME), 'mounts': dyn({_MOUNTS}), 'given': dyn({_given(parameters)})}}"
    yield "checkpointPaths", f"variables.checkpointVolumes.map(p, {_pod_set(containers_where('true', container), '[]')})"

    words = either(*(f"m.mountPath.lowerAscii().contains({text(word)})" for word in parameters.texts("path-words")))
    said = f"'said': dyn(c.mounts.filter(m, {_ENDS} && ({words})))"
    below = ", ".join(
        f"'{which}': dyn(size(c.given) == 0 ? [] : c.mounts.filter(m, {condition}).map(m, {_BELOW}))"
        for which, condition in {"ending": _ENDS, "lasting": f"!({_ENDS})"}.items()
    )
    writer = f"{{'name': dyn(c.name), 'mounts': dyn(c.mounts), 'given': dyn(c.given), {said}, {below}}}"
    writers = f"p.containers.map(c, {writer}).filter(c, size(c.given) > 0 || size(c.said) > 0)"
    previous = "checkpointWriters"
    yield previous, f"variables.checkpointPaths.map(p, {_pod_set(writers, '[]')})"

    for first in range(0, MOST_PLACES, _AT_ONCE):
        some = f"{places_between(first, first + _AT_ONCE)}.filter(i, i < size(p.containers)).map(i, p.containers[i])"
        losing = f"size(p.losing) > 0 ? p.losing : {some}.filter(c, size(c.said) > 0 || c.given.exists(g, {_IS_LOST}))"
        name = f"checkpointsLost{first}"
        yield name, f"variables.{previous}.map(p, {_pod_set('p.containers', losing)})"
        previous = name

    # Variables are evaluated when they are used: few containers need the first alone.
    few = f"variables.checkpointWriters.all(p, size(p.containers) <= {_AT_ONCE})"
    losing = f"({few} ? variables.checkpointsLost0 : variables.{previous})"
    yield PLACES, f"{losing}.map(p, (size(p.losing) > 0 ? [p.losing[0]] : []).map(c, {_REASON}))"


def _pod_set(containers: str, losing: str) -> str:
    kept = ", ".join(f"'{field}': dyn(p.{field})" for field in ("where", "ending", "names"))
    return f"{{{kept}, 'containers': dyn({containers}), 'losing': dyn({losing})}}"


# A volume without a sort is an emptyDir.
_SORTS = (
    (either("has(v.emptyDir)", "v.all(k, k == 'name')"), ("emptyDir", "pod")),
    ("has(v.ephemeral)", ("ephemeral", "pod")),
    ("has(v.hostPath)", ("hostPath", "node")),
)
"""Conditions of volumes that end with the pod or its node, each with the sort of volume and what it ends with."""

_IN_VOLUME = first_of(
    *((condition, sentence(IN_VOLUME, volume=text_at("v", "name"), sort=text(sort), end=text(end))) for condition, (sort, end) in _SORTS)
)


def _pair(first: str, second: str) -> str:
    """Return a list of two strings. Unlike other evaluators, the API server rejects a list in which it knows only one element's type."""
    return f"[dyn({first}), dyn({second})]"


def _given(parameters: Parameters) -> str:
    """Return CEL for arguments and variables of CONTAINER that name a checkpoint place: the name, and its path with a slash at the end."""
    spelled = texts(dict.fromkeys(re.sub(r"[-_]", "", name.rpartition(".")[2]).lower() for name in parameters.texts("names")))

    def is_spelled(name: str) -> str:
        return f"{name}.substring({name}.lastIndexOf('.') + 1).replace('-', '').replace('_', '').lowerAscii() in {spelled}"

    def is_folder(path: str) -> str:
        return every(f"{path}.startsWith('/')", f"!({path}.contains('.') && {path}.matches({text(r'[^/]+[.][^/.]+/*$')}))")

    def pair(name: str, path: str) -> str:
        return _pair(name, _WITH_SLASH.replace("PATH", path))

    # Few arguments match, so only names are computed for all of them, and the rest only for matches.
    name = "a[j].split('=')[0]"
    value = "a[j].contains('=') ? a[j].substring(a[j].indexOf('=') + 1) : j + 1 < size(a) ? a[j + 1] : ''"
    some = f"(size(a) > {MOST_PLACES} ? variables.manyPlaces : size(a) > {FEW_PLACES} ? variables.places : variables.fewPlaces)"
    named = f"{some}.filter(j, j < size(a) && a[j].startsWith('-') && {is_spelled(name)})"
    arguments = let("a", f"{list_at('CONTAINER', 'command')} + {list_at('CONTAINER', 'args')}", f"{named}.map(j, {_pair(name, value)})")
    written = every("v.?name.hasValue()", "v.?value.hasValue()", is_spelled("v.name"), is_folder("v.value"))
    return (
        f"{arguments}.filter(g, {is_folder('g[1]')}).map(g, {pair('g[0]', 'g[1]')})"
        f" + {list_at('CONTAINER', 'env')}.filter(v, {written}).map(v, {pair('v.name', 'v.value')})"
    )


_WITH_SLASH = "(PATH.endsWith('/') ? PATH : PATH + '/')"
_BELOW = _WITH_SLASH.replace("PATH", "m.mountPath")
_MOUNTS = f"{list_at('CONTAINER', 'volumeMounts')}.filter(m, m.?mountPath.hasValue())"
_ENDS = f"{text_at('m', 'name')} in p.names"


def _deepest(below: str) -> str:
    """Return CEL for the length of the longest of these paths above `path`. 0 if there is none."""
    return f"([0] + {below}.map(b, path.startsWith(b) ? size(b) : 0)).max()"


# The nearest mount above a path decides. Without one it is the container's own file system, which ends with the container.
_IS_LOST = let(
    "path",
    "g[1]",
    first_of(
        ("!c.ending.exists(b, path.startsWith(b))", "!c.lasting.exists(b, path.startsWith(b))"),
        otherwise=f"{_deepest('c.ending')} > {_deepest('c.lasting')}",
    ),
)
_MOUNT = let("nearest", _deepest("c.ending"), f"c.mounts.filter(m, {_ENDS} && size({_BELOW}) == nearest && path.startsWith({_BELOW}))[0]")


def _volume_of(mount: str) -> str:
    return let("m", mount, f"p.ending.filter(v, {text_at('v', 'name')} == {text_at('m', 'name')}).map(v, {_IN_VOLUME})[0]")


_BY_MOUNT = sentence(
    LOST, place=sentence(MOUNTED, where="p.where", path="c.said[0].mountPath", container="c.name"), ends=_volume_of("c.said[0]")
)
_PATH_ENDS = let("path", "g[1]", first_of((f"{_deepest('c.ending')} > 0", _volume_of(_MOUNT)), otherwise=text(IN_CONTAINER)))
_BY_NAME = sentence(LOST, place=sentence(NAMED, where="p.where", name="g[0]", container="c.name"), ends=_PATH_ENDS)
_REASON = first_of(("size(c.said) > 0", _BY_MOUNT), otherwise=let("g", f"c.given.filter(g, {_IS_LOST})[0]", _BY_NAME))
"""CEL for the first reason why the container `c` of `p` loses checkpoints."""
