"""The rule gpu-container-above-maximum in CEL: its parameter is what the largest node of the pods' class has."""

from __future__ import annotations

from capacity.catalog.node_labels import GPU_RESOURCE
from policies.admission.cel import amount, every, first_of, let, optional, text, text_at
from policies.admission.form import POD_MAKERS, Form, of_each, told
from policies.admission.pod_gpus import containers_where
from policies.admission.scheduling_options import MOST_GPUS
from policies.admission.variables import GPU_WORK
from policies.rules.gpu_container_above_maximum import ABOVE, ABOVE_REMEDY, MOST, RULE

_OF_CLASS = f"variables.facts[?({text(MOST_GPUS + '.')} + {text_at('p.pod', 'priorityClassName')})]"
_MOST = f"{_OF_CLASS}.or(variables.facts[?{text(MOST_GPUS)}]).orValue({text(str(RULE.defaults().number(MOST)))})"
_LIMIT = f"{optional('CONTAINER', 'resources', 'limits')}[?{text(GPU_RESOURCE)}]"
_COUNT = f"string({_LIMIT}.value())"
_ABOVE = containers_where(
    every(f"{_LIMIT}.hasValue()", f"isQuantity({_COUNT})", f"{amount(_COUNT)}.compareTo(quantity(most)) > 0"),
    told(ABOVE, ABOVE_REMEDY, where="p.where", container="NAME", count=_COUNT, most="most"),
)

FORM = Form(
    RULE,
    POD_MAKERS,
    of_each(GPU_WORK, let("most", _MOST, let("above", _ABOVE, first_of(("size(above) > 0", "above[0]"))))),
)
