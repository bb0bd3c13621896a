"""The CEL form of a rule, and variables that forms share. Name, code and messages are those of the rule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flexspot.policies.admission.cel import (
    either,
    every,
    text,
    text_at,
)
from flexspot.policies.inventory.pod_gpus import POD_MAKERS as KINDS
from flexspot.policies.values.finding import PREFIX, ConfiguredSuppression

if TYPE_CHECKING:
    from collections.abc import Iterable


def accepted(rule: str) -> str:
    """Return CEL that is true if an annotation of the object or its pod templates accepts a violation, with a reason and no expired date.

    CEL has no clock, so the date is compared with the object's creation, which the API server has set by then.
    """
    key = text(PREFIX + rule)
    today = text_at("object", "metadata", "creationTimestamp")
    until = "a.split(';').filter(s, s.trim().startsWith('until') && s.contains('='))"
    day = "s.split('=')[1].trim()"
    valid = f"({day} == '' || ({day}.matches({text(r'^[0-9]{4}-[0-9]{2}-[0-9]{2}$')}) && {today} <= {day} + 'T99'))"
    reason = "a.split(';')[0].trim() != ''"
    return f"variables.annotations.filter(m, {key} in m).map(m, m[{key}]).exists(a, {reason} && {until}.all(s, {valid}))"


_NAME = text_at("object", "metadata", "name")
_FULL = f"object.kind + '/' + request.namespace + '/' + {_NAME}"
_SPELLINGS = (f"object.apiVersion + '/' + {_FULL}", _FULL, f"object.kind + '/' + {_NAME}", _NAME)
"""Names by which a suppression may refer to the object: see flexspot.policies.values.finding.ConfiguredSuppression."""


def accepted_in_settings(suppressions: Iterable[ConfiguredSuppression]) -> str:
    """Return CEL that is true if the settings suppress a rule for the object, without an expired date.

    `suppressions` are those of the rule.
    """
    today = text_at("object", "metadata", "creationTimestamp")
    return either(
        *(
            every(
                f"[{', '.join(f'dyn({each})' for each in _SPELLINGS)}].exists(s, s.matches({text(_pattern(each.objects))}))",
                f"{today} <= {text(f'{each.suppression.until}T99')}" if each.suppression.until else "true",
            )
            for each in suppressions
        )
    )


_SIGN = re.compile(r"(\[[^\]]+\]|[*?])")


def _pattern(objects: str) -> str:
    """Return a pattern of fnmatch as a regular expression of CEL."""
    made = {"*": ".*", "?": "."}
    # Splitting at a group returns the matches of the group as every second part.
    parts = enumerate(_SIGN.split(objects))
    return f"^(?:{''.join(made.get(part, part.replace('[!', '[^', 1)) if place % 2 else re.escape(part) for place, part in parts)})$"


QUEUED_KINDS = ("Job", "JobSet", "CronJob")
"""Kinds that queues admit (flexspot.capacity.plan.kueue_configuration.FRAMEWORKS), and kinds that create these."""

_WITHOUT_GPUS = ("DaemonSet", "PodTemplate")

UNQUEUED_KINDS = tuple(dict.fromkeys(kind for _, kind in KINDS if kind not in (*QUEUED_KINDS, *_WITHOUT_GPUS)))
"""Kinds that queues do not admit, including those of operators. Their GPUs count to the team's share for services.

Excludes DaemonSets, which are refused, and PodTemplates, which create no pods.
"""
