"""The rule gpu-container-without-limit in CEL."""

from __future__ import annotations

from policies.admission.cel import first_of, let
from policies.admission.form import POD_MAKERS, Form, of_each, told
from policies.admission.pod_gpus import ASKS, PLACED_BY, UNBACKED
from policies.admission.variables import WORK
from policies.rules.gpu_container_without_limit import IDLE, IDLE_REMEDY, RULE
from policies.rules.gpu_container_without_limit import UNBACKED as UNBACKED_TEXT

_UNBACKED = told(UNBACKED_TEXT, RULE.remediation, where="p.where", container="unbacked[0]")
_IDLE = told(IDLE, IDLE_REMEDY, where="p.where", by="by")
_PLACED = let("by", PLACED_BY, first_of((f"by != '' && !({ASKS})", _IDLE)))

FORM = Form(RULE, POD_MAKERS, of_each(WORK, let("unbacked", UNBACKED, first_of(("size(unbacked) > 0", _UNBACKED), otherwise=_PLACED))))
