"""Random objects get the same verdict from a stack's policies, evaluated by a real API server or without one, and from lint."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from admission_fixtures import ELSEWHERE, Answer, ignored_errors, kinds_of_frameworks, wait_for_kinds, with_policies_of
from admission_parity import namespace_object, rule_messages_of_each
from cel_evaluator import judged
from generated_objects import FEW, Generator
from program_declarations import as_shipped, plan_of
from stack_readings import readings_of

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE, TEAM_LABEL
from flexspot.policies.admission.policy import admission_policies
from flexspot.policies.admission.scheduling_options import MOST_GPUS, facts_of, team_annotations
from flexspot.policies.core import read_source
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import Level, Settings
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster, KubeObject

SEEDS = {"local": 1, "prod-gke": 2, "prod-eks": 3}
"""The stacks, and the seed of the objects of each."""

STOPPING = {rule.name for rule in all_rules() if rule.level is Level.MANDATORY}


def evaluated(stack: str, objects: list[KubeObject], namespace_labels: dict[str, str]) -> list[tuple[KubeObject, Answer]]:
    """Return the verdicts of a stack's policies on objects, from a CEL evaluator that needs no API server."""
    plan = plan_of(stack)
    policies, read = admission_policies(facts_of(plan)), team_annotations(plan, plan.teams[0])
    answers: list[tuple[KubeObject, Answer]] = []
    for each in objects:
        named = {"namespace_labels": namespace_labels, "namespace_annotations": read}
        judged_by = [found for policy in policies if (found := judged(policy, each, **named))]
        answers.append((each, Answer(each, "", {}, {rule: said[0] for found in judged_by for rule, said in found.items() if said})))
    return answers


@pytest.mark.slow
@pytest.mark.parametrize("stack", ["prod-gke", "prod-eks"])
def test_a_generated_object_gets_the_same_verdict_from_policies_and_lint(stack: str) -> None:
    plan = plan_of(stack)
    team = plan.teams[0].namespace
    labels = {TEAM_LABEL: team}

    created = Generator(SEEDS[stack], team, plan, FEW).objects(100)

    assert len(compare(stack, evaluated(stack, created, labels), {team: labels}, refusing=False)) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist"])
def test_affinity_expressions_have_the_same_meaning_for_policies_and_lint(operator: str) -> None:
    plan = plan_of("prod-gke")
    team = plan.teams[0].namespace
    labels = {TEAM_LABEL: team}
    metadata = {"name": "job", "namespace": team}
    jobs: list[KubeObject] = []
    for key in ("cloud.google.com/gke-spot", "acme.com/own"):
        expression = {"key": key, "operator": operator, **({"values": ["true"]} if operator in {"In", "NotIn"} else {})}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        for queue in ({}, {"kueue.x-k8s.io/queue-name": "default"}):
            pod = {
                "terminationGracePeriodSeconds": 121,
                "tolerations": [{"operator": "Exists"}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
                "containers": [{"name": "main", "image": "work:1", "resources": {"limits": {GPU_RESOURCE: 1}}}],
            }
            spec = {"backoffLimit": 0, "template": {"spec": pod}}
            jobs.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata | {"labels": queue}, "spec": spec})

    compare("prod-gke", evaluated("prod-gke", jobs, labels), {team: labels}, refusing=False)


WIDE = pytest.mark.nightly(tested_by="test_a_generated_object_gets_the_same_verdict_from_server_and_lint")


@pytest.mark.lab
@pytest.mark.timeout(900)
@pytest.mark.parametrize("stack,objects", [("local", 100), *(pytest.param(stack, 700, marks=WIDE) for stack in SEEDS)])
def test_a_generated_object_gets_the_same_verdict_from_server_and_lint(stack: str, objects: int, cluster: Cluster) -> None:
    plan = plan_of(stack)
    team = plan.teams[0].namespace
    answers: list[tuple[KubeObject, Answer]] = []
    refused_by_kubernetes: Counter[str] = Counter()
    # Lint has no rules for policies that protect a guarantee, and policies that add labels would hide that they are missing.
    with kinds_of_frameworks(cluster), with_policies_of(as_shipped(stack), cluster, team, guards=False) as server:
        wait_for_kinds(server, team)
        before = ignored_errors(server)
        for namespace, seed in ((ELSEWHERE, SEEDS[stack]), (team, SEEDS[stack] + 100)):
            for each in Generator(seed, namespace, plan).objects(objects // 2):
                answer = server.ask(each)
                if answer.taken is None and not answer.denied:
                    refused_by_kubernetes[re.sub(r"\[?\d+\]?|made|v\d", "N", answer.refusal)[:260]] += 1
                else:
                    answers.append((answer.taken or each, answer))
        assert ignored_errors(server) == before, "a policy ended in an error"

    # A refusal does not show what the server would have filled in, so a refused object is judged as it was sent.
    assert sum(refused_by_kubernetes.values()) < objects // 10, refused_by_kubernetes.most_common(12)
    assert len(compare(stack, answers, {team: {TEAM_LABEL: team}, ELSEWHERE: {}}, refusing=True)) >= 8


def most_gpus(each: KubeObject, facts: dict[str, str]) -> int:
    """Return the largest number of GPUs per container: the stack's fact of the priority that all pods of a generated object share."""
    named = {f"{MOST_GPUS}.{priority}" for priority in values_of(each, "priorityClassName")} & facts.keys()
    assert len(named) <= 1
    return int(facts[named.pop() if named else MOST_GPUS])


def values_of(value: Any, field: str) -> Iterator[Any]:
    """Yield the values of a field, wherever it is in an object."""
    if isinstance(value, dict):
        if field in value:
            yield value[field]
        for each in value.values():
            yield from values_of(each, field)
    elif isinstance(value, list):
        for each in value:
            yield from values_of(each, field)


OPEN = re.compile(
    r"topology[.]|eks[.]amazonaws[.]com/|(node[.])?kubernetes[.]io/|cloud[.]google[.]com/machine-family|karpenter[.]k8s[.]aws/"
)
"""Labels that a cloud sets on nodes by itself. Lint accepts them in pools, and a cluster's facts do not contain them.

So a cluster is uncertain where lint is certain. This is the only difference among the rules that check where pods run.
"""

OF_PLACES = {"grace-exceeds-notice", "job-dies-on-interruption", "flex-job-over-seven-days"}


WRITTEN_OTHERWISE = re.compile(
    r"(?<=has a limit of )\S+|-node-pool(?=,)|(?<=spec[.]hard\[)[^]]+|(?<=counted as )\S+|(?<=To fix it: write )requests\S+"
    r"|(?<=by nodeSelector )[^)]+"
)
"""Parts of messages that differ for the same verdict.

Lint shows the number in effect, and the server the written one. Lint names a GKE pool by its Pulumi name. Of several wrong entries of a
mapping, each names another.
"""


def alike(said: str, by_rules: list[str]) -> bool:
    """Return whether one of the rule's own messages is the server's."""
    return WRITTEN_OTHERWISE.sub("", said) in {WRITTEN_OTHERWISE.sub("", each) for each in by_rules}


def differences(answer: Answer, found: dict[str, list[str]], *, of_team: bool) -> set[str]:
    """Return the rules on which server and lint disagree."""
    stopping = found.keys() & STOPPING
    if answer.denied:
        # A refusal names only the first of its possible reasons.
        return answer.denied.keys() - stopping
    different = answer.warned.keys() ^ found.keys()
    different |= {rule for rule, said in answer.warned.items() if rule in found and not alike(said, found[rule])}
    return different | (stopping if of_team else set())


def explained(each: KubeObject, different: set[str]) -> bool:
    """Return whether only lint is certain, because of a label that the cloud sets by itself."""
    return different <= OF_PLACES and any(OPEN.match(key) for key in selecting(each))


def selecting(each: KubeObject) -> Iterator[str]:
    """Yield the keys of labels by which pods select nodes."""
    for selector in values_of(each, "nodeSelector"):
        yield from selector
    for expressions in values_of(each, "matchExpressions"):
        yield from (expression["key"] for expression in expressions)


def compare(stack: str, answers: list[tuple[KubeObject, Answer]], labels: dict[str, dict[str, str]], *, refusing: bool) -> set[str]:
    """Compare answers with lint's findings about the same objects. Return the rules that these violate.

    `refusing`: whether the answers refuse findings that stop an object in a team's namespace.
    """
    facts = dict(facts_of(plan_of(stack)))
    namespaces = [read_source(from_manifest(namespace_object({"metadata": {"namespace": name}}, own))) for name, own in labels.items()]
    broken: set[str] = set()
    differing: list[str] = []
    accepted = 0
    for most in sorted({most_gpus(each, facts) for each, _ in answers}):
        group = [(each, answer) for each, answer in answers if most_gpus(each, facts) == most]
        settings = Settings(values={"gpu-container-above-maximum": {MOST_GPUS: most}})
        findings = rule_messages_of_each([each for each, _ in group], [*readings_of(stack), *namespaces], settings)
        for (each, answer), by_rules in zip(group, findings, strict=True):
            found = {rule: said for rule, said in by_rules.items() if said}
            broken |= found.keys()
            different = differences(answer, found, of_team=refusing and bool(labels[each["metadata"]["namespace"]]))
            if different and explained(each, different):
                accepted += 1
            elif different:
                differing.append(f"{each}\n  server: {answer.denied or answer.warned}\n  lint: {found}")
    assert not differing, f"{len(differing)} of {len(answers)}:\n" + "\n".join(differing[:5])
    assert accepted <= len(answers) // 40, accepted
    return broken
