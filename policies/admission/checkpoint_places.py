"""Where containers say that they write checkpoints, in CEL: what policies.checkpoint_paths is for the rules in Python.

In three variables, each of the one before: expressions may not be nested deeper than 32 in Google's own parser of CEL.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policies.admission.cel import either, every, first_of, let, list_at, sentence, text, text_at, texts
from policies.admission.pod_gpus import containers_where
from policies.checkpoint_paths import IN_CONTAINER, IN_VOLUME, MOUNTED, NAMED
from policies.rules.checkpoint_on_ephemeral_volume import LOST, RULE

if TYPE_CHECKING:
    from collections.abc import Mapping

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

_CONTAINERS = containers_where("true", _CONTAINER)

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
    "checkpointMounts": f"variables.volumeEnds.map(p, {{'where': dyn(p.where), 'containers': dyn({_CONTAINERS})}})",
    PLACES: f"variables.checkpointMounts.map(p, p.containers.map(c, {_OF_CONTAINER}).filter(l, size(l) > 0).map(l, l[0]))",
}
