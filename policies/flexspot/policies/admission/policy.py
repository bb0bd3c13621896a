"""The API server's policies as plain data: one that denies, one that warns, and one that adds owner labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.node_labels import ENVIRONMENT_LABEL, OWNER_LABEL, TEAM_LABEL
from flexspot.policies.admission.acceptance import accepted, accepted_in_settings
from flexspot.policies.admission.cel import mapping_at, sentence, text, texts
from flexspot.policies.admission.forms import Form, all_forms
from flexspot.policies.admission.pods import changed_by_people, owner_is_not_judged
from flexspot.policies.admission.scheduling_options import MOST_GPUS
from flexspot.policies.admission.variables import shared_variables, used_by
from flexspot.policies.inventory.pod_gpus import POD_MAKERS, ObjectKind
from flexspot.policies.judging import DEFAULTS, Level, Settings
from flexspot.policies.rules.gpu_requests import MOST, gpu_container_above_maximum

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


POLICIES = {Level.MANDATORY: "flexspot", Level.ADVISORY: "flexspot-advice"}
"""Names of the policies, by the level of their rules."""


@dataclass(frozen=True)
class ResourceRule:
    """Objects that a policy judges, in any version of their API."""

    group: str
    resources: tuple[str, ...]
    operations: tuple[str, ...]


@dataclass(frozen=True)
class Expression:
    """CEL with a name: a variable, or a condition for evaluating a policy."""

    name: str
    expression: str


@dataclass(frozen=True)
class Validation:
    """One rule of a policy."""

    rule: str
    problems: str
    """Name of the variable with the problems."""
    expression: str
    """CEL that is true if the object passes."""
    message: str
    """Message if `message_expression` fails."""
    message_expression: str
    """CEL for the message of an object that fails."""


@dataclass(frozen=True)
class AdmissionPolicy:
    """Rules of one level."""

    name: str
    stops: bool
    """True if violations are refused. Otherwise their sender is warned."""
    resource_rules: tuple[ResourceRule, ...]
    conditions: tuple[Expression, ...]
    variables: tuple[Expression, ...]
    validations: tuple[Validation, ...]
    guards: bool = False
    """True if the rules apply only to teams' namespaces and also refuse objects for which their evaluation fails."""
    elsewhere: bool = False
    """True if such rules apply to all other namespaces instead."""


def admission_policies(facts: Mapping[str, str], settings: Settings = DEFAULTS) -> tuple[AdmissionPolicy, ...]:
    """Return the policies that have rules, each with its rules by code. `facts` come from flexspot.policies.admission.scheduling_options.

    `settings` are an organisation's own levels, parameters, suppressions and locked rules. Default: as shipped. The policies contain the
    facts, instead of a ConfigMap as their `params`: see docs/decisions, "Facts stand in the policies".
    """
    forms = [form for form in all_forms() if form.matched(settings.parameters(form.rule))]
    by_level = {level: [form for form in forms if settings.level(form.rule) is level] for level in POLICIES}
    known = _not_set(facts, settings)
    return tuple(
        _policy(POLICIES[level], of_level, known, settings, stops=level is Level.MANDATORY)
        for level, of_level in by_level.items()
        if of_level
    )


def _not_set(facts: Mapping[str, str], settings: Settings) -> Mapping[str, str]:
    """Return the facts except those that a parameter in the settings replaces."""
    is_set = settings.parameters(gpu_container_above_maximum).is_set(MOST)
    return {key: value for key, value in facts.items() if not (is_set and (key == MOST_GPUS or key.startswith(f"{MOST_GPUS}.")))}


def _policy(name: str, forms: list[Form], facts: Mapping[str, str], settings: Settings, *, stops: bool) -> AdmissionPolicy:
    problems = [Expression(variable_of(form.rule.name), _problems(form, settings)) for form in forms]
    known = shared_variables(facts, settings)
    shared = [Expression(*each) for each in used_by((each.expression for each in problems), known)]
    return AdmissionPolicy(
        name=name,
        stops=stops,
        resource_rules=_resource_rules(forms, settings),
        conditions=(
            Expression("made-by-nobody-judged", owner_is_not_judged()),
            Expression("changed-by-people", changed_by_people()),
        ),
        variables=(*shared, *problems),
        validations=tuple(validation(each.rule.name, f"{each.rule.name} ({each.rule.code}): ", each.rule.remediation) for each in forms),
    )


def variable_of(rule: str) -> str:
    """Return the name of the variable with the problems of a rule."""
    first, *others = rule.split("-")
    return first + "".join(map(str.capitalize, others))


def _problems(form: Form, settings: Settings) -> str:
    parameters = settings.parameters(form.rule)
    applies = f"object.kind in {texts(dict.fromkeys(each.kind for each in form.matched(parameters)))}"
    if not settings.locks(form.rule):
        applies += f" && !({accepted(form.rule.name)})"
        if suppressions := [each for each in settings.suppressions if each.rule == form.rule.name]:
            applies += f" && !({accepted_in_settings(suppressions)})"
    return f"({applies}) ? ({form.problems(parameters)}) : []"


def validation(rule: str, lead: str, otherwise: str) -> Validation:
    """Return the validation of a rule. Its message is `lead` and the first problem, or `lead` and `otherwise` if the evaluation fails."""
    problems = f"variables.{variable_of(rule)}"
    return Validation(
        rule=rule,
        problems=variable_of(rule),
        expression=f"size({problems}) == 0",
        message=f"{lead}{otherwise}",
        message_expression=sentence(f"{lead}{{problem}}", problem=f"{problems}[0]"),
    )


def _resource_rules(forms: Iterable[Form], settings: Settings) -> tuple[ResourceRule, ...]:
    by_group: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for matched in dict.fromkeys(matched for form in forms for matched in form.matched(settings.parameters(form.rule))):
        by_group.setdefault((matched.group, _operations(matched)), []).append(matched.resource)
    return tuple(ResourceRule(group, tuple(sorted(resources)), operations) for (group, operations), resources in sorted(by_group.items()))


def _operations(matched: ObjectKind) -> tuple[str, ...]:
    # A pod's containers and grace period cannot change, and the scheduler, the kubelet and Kueue update pods often.
    return ("CREATE",) if (matched.group, matched.kind) == ("", "Pod") else ("CREATE", "UPDATE")


KEYS = (ENVIRONMENT_LABEL, OWNER_LABEL, TEAM_LABEL)
"""Labels that are added. The last two are among those that missing-owner-labels requires."""

_OWN = mapping_at("object", "metadata", "labels")
_OF_NAMESPACE = mapping_at("namespaceObject", "metadata", "labels")
_PATH = f"{text('/metadata/labels/')} + jsonpatch.escapeKey(k)"

PATCHES = (
    "(has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {}}])"
    f" + {texts(KEYS)}.filter(k, k in {_OF_NAMESPACE} && !(k in {_OWN}))"
    f".map(k, JSONPatch{{op: 'add', path: {_PATH}, value: namespaceObject.metadata.labels[k]}})"
)
"""CEL for the patches of an object: every label that its namespace has and the object does not."""


def labelled() -> tuple[ResourceRule, ...]:
    """Return all creations of pods and of objects that create pods. Pods need labels, too, so that metrics about them have an owner."""
    return of_pod_makers("CREATE")


def of_pod_makers(*operations: str) -> tuple[ResourceRule, ...]:
    """Return these operations on pods and on objects that create pods."""
    by_group: dict[str, list[str]] = {}
    for maker in POD_MAKERS.values():
        by_group.setdefault(maker.group, []).append(maker.resource)
    return tuple(ResourceRule(group, tuple(resources), operations) for group, resources in by_group.items())
