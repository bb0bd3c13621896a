"""Where pods can run, in CEL: as policies.ways and policies.placement have it, from what policies.admission.facts says of the pools.

Of a pod set `p` only what is certain counts: a selector that the facts do not know proves nothing.
"""

from __future__ import annotations

from capacity.workloads.names import QUEUE_LABEL
from policies.admission.cel import either, entry, every, first_of, let, list_at, mapping_at, sentence, text, text_at, texts
from policies.admission.facts import DIRECT, LABEL, NAMES_SPOT, QUEUE, TAINT, VIA, WAY
from policies.ways import DEFAULT_QUEUE, SPOT_LABELS, WITHOUT_DEFAULT_QUEUE

_ASKED_FOR = f"variables.queueLabels[?{text(QUEUE_LABEL)}]"
_DEFAULT = f"{text(QUEUE)} + request.namespace + {text('.' + DEFAULT_QUEUE)}"

QUEUE_NAME = first_of(
    (f"{_ASKED_FOR}.hasValue()", f"{_ASKED_FOR}.value()"),
    (f"!(object.kind in {texts(WITHOUT_DEFAULT_QUEUE)}) && ({_DEFAULT}) in variables.facts", text(DEFAULT_QUEUE)),
)
"""The LocalQueue that the object goes to; empty for none. Kueue gives work without a label to the one called default."""

_QUEUE_KEY = f"{text(QUEUE)} + request.namespace + '.' + variables.queue"
_NAMES = first_of(
    ("variables.queue == ''", entry("variables.facts", text(DIRECT))),
    otherwise=entry("variables.facts", f"({_QUEUE_KEY})"),
)
WAYS = f"({_NAMES}).split('\\n').filter(n, ({text(WAY)} + n) in variables.facts).map(n, variables.facts[{text(WAY)} + n].split('\\n'))"
"""The ways in which the object's pods can be scheduled, each a list of lines as policies.admission.facts writes them."""

_TOLERATED = either(
    every(f"{text_at('t', 'key')} == ''", f"{text_at('t', 'operator')} == 'Exists'"),
    every(
        f"{text_at('t', 'operator')} == 'Exists'",
        f"x.startsWith({text(TAINT)} + {text_at('t', 'key')} + '=')",
    ),
    f"x.startsWith({text(TAINT)} + {text_at('t', 'key')} + '=' + {text_at('t', 'value')} + ':')",
)
_SAME_EFFECT = f"{text_at('t', 'effect')} == '' || x.endsWith(':' + {text_at('t', 'effect')})"
TERMS = list_at("p.pod", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_ALLOWED = (
    f"{text_at('e', 'operator')} != 'In' || {list_at('e', 'values')}.exists(v, ({text(LABEL)} + {text_at('e', 'key')} + '=' + v) in w)"
)

_TOLERATES = (
    f"w.filter(x, x.startsWith({text(TAINT)})).all(x, {list_at('p.pod', 'tolerations')}.exists(t, ({_TOLERATED}) && ({_SAME_EFFECT})))"
)

LANDS = every(
    f"{mapping_at('p.pod', 'nodeSelector')}.all(k, ({text(LABEL)} + k + '=' + string(p.pod.nodeSelector[k])) in w)",
    f"size({TERMS}) == 0 || {TERMS}.exists(t, {list_at('t', 'matchExpressions')}.all(e, {_ALLOWED}))",
    _TOLERATES,
)
"""Whether it is certain that `p` can run on the nodes of the way `w`."""

SPOT_WAYS = f"variables.ways.filter(w, w[2] != '0' && ({LANDS}))"
"""The ways of `p` that certainly lead to nodes which the cloud takes back."""

_SELECTOR = mapping_at("p.pod", "nodeSelector")
NAMES_SPOT_ITSELF = either(*(f"{entry(_SELECTOR, text(key))} in {texts(sorted(values))}" for key, values in SPOT_LABELS.items()))
_SAME = f"[x.substring({len(VIA)}).split('=')].exists(l, !(l[0] in {_SELECTOR}) || string(p.pod.nodeSelector[l[0]]) == l[1])"
_VIA_KEY = f"{text(VIA)} + {text_at('e', 'key')} + '='"
_LEFT_OPEN = either(
    f"{text_at('e', 'operator')} != 'In'",
    f"!w.exists(x, x.startsWith({_VIA_KEY}))",
    f"{list_at('e', 'values')}.exists(v, ({_VIA_KEY} + v) in w)",
)
OPEN = every(
    f"w.filter(x, x.startsWith({text(VIA)})).all(x, {_SAME})",
    f"size({TERMS}) == 0 || {TERMS}.exists(t, {list_at('t', 'matchExpressions')}.all(e, {_LEFT_OPEN}))",
    _TOLERATES,
)
"""Whether Kueue may give `p` the flavor of the way `w`: nothing that `p` asks for speaks against it."""
_NAMED = f"variables.ways.filter(w, w[1] != '' && ({OPEN}) && (w[3] == {text(NAMES_SPOT)} || ({NAMES_SPOT_ITSELF}))).map(w, w[1])"

NAMED_BY = first_of(("variables.queue == ''", f"({NAMES_SPOT_ITSELF}) ? ['its nodeSelector'] : []"), otherwise=_NAMED)
"""What names such nodes for `p`, of whatever pool: its own selector, or flavors that Kueue may give it."""

SHOWN_BY = first_of(
    ("size(named) > 0", sentence("{via} names Spot nodes", via="named[0]")),
    otherwise=sentence("it may run on {pool}, which is Spot", pool="spot[0][0]"),
)
"""What shows that `p`, whose SPOT_WAYS are `spot` and whose NAMED_BY is `named`, runs on such nodes."""


def on_spot(problem: str) -> str:
    """The problem of `p`, for which `spot` and `named` are there, if it certainly runs on such nodes."""
    return let("spot", SPOT_WAYS, let("named", NAMED_BY, first_of(("size(spot) > 0 || size(named) > 0", problem))))
