"""The rule image-not-pinned in CEL."""

from __future__ import annotations

from policies.admission.cel import either, every, first_of, let, sentence, text, text_at, texts
from policies.admission.form import POD_MAKERS, Form, of_each, told
from policies.admission.pod_gpus import containers_where
from policies.admission.variables import GPU_WORK
from policies.rules.image_not_pinned import MOVES, RULE, UNPINNED, UNTAGGED

_DEFAULTS = RULE.defaults()
_IMAGE = text_at("CONTAINER", "image")
# A colon before the last slash is that of a registry's port.
_LAST = f"{_IMAGE}.substring({_IMAGE}.lastIndexOf('/') + 1)"
_TAG = f"{_LAST}.substring({_LAST}.indexOf(':') + 1)"
_TAGGED = f"{_LAST}.contains(':')"

_MOVING = every(
    "CONTAINER.?image.hasValue()",
    f"!{_IMAGE}.contains('@')",
    *(f"!{_IMAGE}.startsWith({text(each)})" for each in _DEFAULTS.texts("allowed-registries")),
    either(f"!{_TAGGED}", f"{_TAG} in {texts(_DEFAULTS.texts('moving-tags'))}"),
)
_HOW = first_of((_TAGGED, sentence(MOVES, tag=_TAG)), otherwise=text(UNTAGGED))
_FOUND = containers_where(_MOVING, told(UNPINNED, RULE.remediation, where="p.where", container="NAME", how=_HOW))

FORM = Form(RULE, POD_MAKERS, of_each(GPU_WORK, let("moving", _FOUND, first_of(("size(moving) > 0", "moving[0]")))))
