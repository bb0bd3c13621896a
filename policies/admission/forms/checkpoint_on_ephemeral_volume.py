"""The rule checkpoint-on-ephemeral-volume in CEL."""

from __future__ import annotations

from policies.admission.cel import texts
from policies.admission.form import POD_MAKERS, Form, told
from policies.admission.pod_gpus import PLACES
from policies.rules.checkpoint_on_ephemeral_volume import RULE

_KINDS = RULE.defaults().texts("kinds")
_LOST = f"variables.{PLACES}.filter(l, size(l) > 0).map(l, {told('{lost}', RULE.remediation, lost='l[0]')})"

FORM = Form(
    RULE,
    tuple(each for each in POD_MAKERS if each.kind in _KINDS),
    f"object.kind in {texts(_KINDS)} ? {_LOST} : []",
)
