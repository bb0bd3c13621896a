"""A rule's form in CEL, and the variables that forms share. Name, code and words are the rule's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.admission.cel import FURTHER_PLACES, PLACES, either, every, mapping, mapping_at, sentence, text, text_at
from policies.admission.checkpoints import checkpoint_variables
from policies.admission.pods import ASKS, MATCHED, SERVES_NODES, pod_sets, queued_metadata
from policies.admission.scheduling_options import QUEUE_NAME, WAYS
from policies.rules.checkpoint_on_ephemeral_volume import RULE as CHECKPOINT_RULE
from policies.values.finding import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from policies.judging import AnyRule, Parameters
    from policies.values.finding import ConfiguredSuppression


@dataclass(frozen=True)
class Matched:
    """A kind of object that the API server shows to a policy; `resource` is how its paths call the kind."""

    group: str
    kind: str
    resource: str


POD_MAKERS = tuple(Matched(maker.group, maker.kind, maker.resource) for maker in MATCHED)
"""Whatever makes pods, bare pods included."""


@dataclass(frozen=True)
class Form:
    """`problems` makes, of the rule's parameters, CEL for a list of what is wrong with `object`, each a text that `told` makes.

    It is empty for an object that keeps the rule, and may use `request`, `namespaceObject` and the variables of policies.admission.form.
    `kinds` names the rule's parameter that lists the kinds it is about; empty where all that match are meant.
    """

    rule: AnyRule
    matches: tuple[Matched, ...]
    problems: Callable[[Parameters], str]
    kinds: str = ""

    def matched(self, parameters: Parameters) -> tuple[Matched, ...]:
        """The kinds that the rule is about."""
        return tuple(each for each in self.matches if not self.kinds or each.kind in parameters.texts(self.kinds))


def told(message: str, remedy: str, **parts: str) -> str:
    """CEL for one problem in the words of the rule: sentences with fields in braces, and CEL for what goes there."""
    return sentence(f"{message}. To fix it: {remedy}", **parts)


def of_each(pods: str, problem: str) -> str:
    """The problems of a list of pod sets: `problem` is CEL for the one of the pod set `p`, an empty text where there is none."""
    return f"{pods}.map(p, {problem}).filter(s, s != {text('')})"


POD_SETS, WORK, GPU_WORK = "variables.podSets", "variables.work", "variables.gpuWork"

_SHARED: Mapping[str, str] = {
    "places": PLACES,
    "furtherPlaces": FURTHER_PLACES,
    "podSets": pod_sets(),
    # What serves the nodes themselves is no work.
    "work": f"{POD_SETS}.filter(p, !({SERVES_NODES}))",
    "gpuWork": f"{WORK}.filter(p, {ASKS})",
    **dict(checkpoint_variables(CHECKPOINT_RULE.defaults())),
    "annotations": f"[{mapping_at('object', 'metadata', 'annotations')}] + "
    f"{POD_SETS}.map(p, {mapping_at('p.template', 'metadata', 'annotations')})",
    "queueLabels": queued_metadata("labels"),
    "facts": mapping({}),
    "queue": QUEUE_NAME,
    "ways": WAYS,
}

_USED = re.compile(r"\bvariables\.(\w+)")


def used_by(expressions: Iterable[str], facts: Mapping[str, str], checkpoints: Parameters | None = None) -> list[tuple[str, str]]:
    """The shared variables that expressions need, each after those that it needs itself; `facts` is one of them.

    `checkpoints` are the parameters of the rule that looks where checkpoints are written. Default: as shipped.
    """
    shared = {**_SHARED, "facts": mapping(facts), **(dict(checkpoint_variables(checkpoints)) if checkpoints else {})}
    names: set[str] = set()
    todo = list(expressions)
    while todo:
        found = {name for name in _USED.findall(todo.pop()) if name in shared} - names
        names |= found
        todo += [shared[name] for name in found - {"facts"}]
    return [(name, expression) for name, expression in shared.items() if name in names]


def accepted(rule: str) -> str:
    """Whether somebody wrote on the object, or on a pod template of it, why it may break a rule, and until no day that is past.

    There is no clock in CEL: the day is the one on which the object is made, which the API server has written into it by then.
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
"""How an object may be called where it is suppressed: see policies.values.finding.ConfiguredSuppression."""


def accepted_in_settings(suppressions: Iterable[ConfiguredSuppression]) -> str:
    """Whether the settings suppress a rule for the object, and until no day that is past; `suppressions` are the rule's own."""
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
    """As fnmatch takes it, in the regular expressions of CEL."""
    made = {"*": ".*", "?": "."}
    # Of what is split at a group every other part is what the group took.
    parts = enumerate(_SIGN.split(objects))
    return f"^(?:{''.join(made.get(part, part.replace('[!', '[^', 1)) if place % 2 else re.escape(part) for place, part in parts)})$"
