"""Thousands of objects made at random get one verdict from a real API server with a stack's policies and from lint given the same facts."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from admission_ground import Answer, holding, passed_over
from admission_parity import namespace_object, told_of_each
from generated_objects import CORE_GROUPS, Generator
from program_declarations import as_shipped, plan_of
from provider_driver import definition_of
from server_questions import DEFINITION
from stack_readings import readings_of

from capacity.catalog.node_labels import TEAM_LABEL
from lab.cluster import Cluster, wait_until_established
from policies.admission.guarantee import NAME
from policies.admission.scheduling_options import MOST_GPUS, facts_of
from policies.core import read_source
from policies.inventory.pod_gpus import POD_MAKERS
from policies.inventory.reading.source import from_manifest
from policies.judging import Level, Settings
from policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import KubeObject
    from lab.control_plane import ControlPlane

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

OBJECTS = 700
"""Of each stack."""

STACKS = {"local": 1, "prod-gke": 2, "prod-eks": 3}
"""And the seed of its objects."""

ELSEWHERE = "without-a-team"
STOPPING = {rule.name for rule in all_rules() if rule.level is Level.MANDATORY}


@pytest.fixture(scope="module")
def lab_cluster(lab: ControlPlane) -> Cluster:
    """The shared lab's API server, for the whole module."""
    return Cluster(lab.home.kubeconfig)


@pytest.fixture(scope="module")
def definitions(lab_cluster: Cluster) -> Iterator[None]:
    """Every kind with a pod template that a server does not have by itself, which takes every field."""
    kinds = {f"{each.resource}.{each.group}": each for each in POD_MAKERS.values() if each.group not in CORE_GROUPS}
    lab_cluster.apply(*(definition_of(each.resource, each.group, each.kind) for each in kinds.values()))
    wait_until_established(lab_cluster, kinds)
    yield
    for name in kinds:
        lab_cluster.delete(DEFINITION, name)

    def gone(found: list[KubeObject]) -> bool:
        return not kinds.keys() & {each["metadata"]["name"] for each in found}

    # Other tests ask for all that the server has.
    lab_cluster.wait_for(DEFINITION, gone, "the end of the definitions")


def most_gpus(each: KubeObject, facts: dict[str, str]) -> int:
    """How many GPUs a container may have: the stack's fact of the priority that all pods of a made object share."""
    named = {f"{MOST_GPUS}.{priority}" for priority in priorities(each)} & facts.keys()
    assert len(named) <= 1
    return int(facts[named.pop() if named else MOST_GPUS])


def priorities(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(found := value.get("priorityClassName"), str):
            yield found
        for each in value.values():
            yield from priorities(each)
    elif isinstance(value, list):
        for each in value:
            yield from priorities(each)


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("stack", STACKS)
def test_a_made_object_gets_one_verdict_from_server_and_lint(lab_cluster: Cluster, stack: str) -> None:
    plan = plan_of(stack)
    team = plan.teams[0].namespace
    labels = {team: {TEAM_LABEL: team}, ELSEWHERE: {}}
    for name, own in labels.items():
        lab_cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": own}})
    every = [each.inputs for each in as_shipped(stack).made.values() if "admissionregistration.k8s.io" in each.type]
    # What guards a guarantee is no rule of lint's, and what fills labels in would hide that they are missing.
    shipped = [each for each in every if not each["metadata"]["name"].startswith(NAME)]

    answers: list[tuple[KubeObject, Answer]] = []
    refused_by_kubernetes: Counter[str] = Counter()
    with holding(lab_cluster, shipped, team) as asked:
        before = passed_over(asked)
        for namespace, seed in ((ELSEWHERE, STACKS[stack]), (team, STACKS[stack] + 100)):
            for each in Generator(seed, namespace, plan).objects(OBJECTS // 2):
                answer = asked.ask(each)
                if answer.taken is None and not answer.denied:
                    refused_by_kubernetes[re.sub(r"\[?\d+\]?|made|v\d", "N", answer.refusal)[:260]] += 1
                else:
                    answers.append((answer.taken or each, answer))
        assert passed_over(asked) == before, "a policy ended in an error"

    # A refusal does not say what the server would have filled in; what is refused is judged as it was sent.
    assert sum(refused_by_kubernetes.values()) < OBJECTS // 10, refused_by_kubernetes.most_common(12)
    compare(stack, answers, labels)


OPEN = re.compile(
    r"topology[.]|eks[.]amazonaws[.]com/|(node[.])?kubernetes[.]io/|cloud[.]google[.]com/machine-family|karpenter[.]k8s[.]aws/"
)
"""Labels that a cloud sets on nodes of its own accord: lint says nothing against a pool for them, and a cluster's facts name none.

So a cluster is not certain of what lint is. Of the rules that look at where pods run this is the one difference.
"""

OF_PLACES = {"grace-exceeds-notice", "job-dies-on-interruption", "flex-job-over-seven-days"}


WRITTEN_OTHERWISE = re.compile(
    r"(?<=has a limit of )\S+|-node-pool(?=,)|(?<=spec[.]hard\[)[^]]+|(?<=counted as )\S+|(?<=To fix it: write )requests\S+"
    r"|(?<=by nodeSelector )[^)]+"
)
"""What differs in words where the verdict is one: lint shows the number that is meant and the server what is written, a pool of GKE's is to
lint what Pulumi calls it, and of several entries of a mapping that are wrong each names another."""


def alike(said: str, by_rules: list[str]) -> bool:
    """Whether one of the rule's own sentences is the server's."""
    return WRITTEN_OTHERWISE.sub("", said) in {WRITTEN_OTHERWISE.sub("", each) for each in by_rules}


def differences(answer: Answer, found: dict[str, list[str]], *, of_team: bool) -> set[str]:
    """The rules of which server and lint do not say the same."""
    stopping = found.keys() & STOPPING
    if answer.denied:
        # Of what a refusal could name it names the first.
        return answer.denied.keys() - stopping
    different = answer.warned.keys() ^ found.keys()
    different |= {rule for rule, said in answer.warned.items() if rule in found and not alike(said, found[rule])}
    return different | (stopping if of_team else set())


def explained(each: KubeObject, different: set[str]) -> bool:
    """Whether lint alone is certain of something that hangs on a label of the cloud's own."""
    return different <= OF_PLACES and any(OPEN.match(key) for key in selecting(each))


def selecting(value: Any) -> Iterator[str]:
    """The keys of labels by which pods select nodes."""
    if isinstance(value, dict):
        yield from value.get("nodeSelector", {})
        yield from (each["key"] for each in value.get("matchExpressions", []))
        for each in value.values():
            yield from selecting(each)
    elif isinstance(value, list):
        for each in value:
            yield from selecting(each)


def compare(stack: str, answers: list[tuple[KubeObject, Answer]], labels: dict[str, dict[str, str]]) -> None:
    facts = dict(facts_of(plan_of(stack)))
    namespaces = [read_source(from_manifest(namespace_object({"metadata": {"namespace": name}}, own))) for name, own in labels.items()]
    broken: Counter[str] = Counter()
    differing: list[str] = []
    accepted = 0
    for most in sorted({most_gpus(each, facts) for each, _ in answers}):
        group = [(each, answer) for each, answer in answers if most_gpus(each, facts) == most]
        settings = Settings(values={"gpu-container-above-maximum": {MOST_GPUS: most}})
        told = told_of_each([each for each, _ in group], [*readings_of(stack), *namespaces], settings)
        for (each, answer), by_rules in zip(group, told, strict=True):
            found = {rule: said for rule, said in by_rules.items() if said}
            broken.update(found.keys())
            different = differences(answer, found, of_team=bool(labels[each["metadata"]["namespace"]]))
            if different and explained(each, different):
                accepted += 1
            elif different:
                differing.append(f"{each}\n  server: {answer.denied or answer.warned}\n  lint: {found}")
    assert not differing, f"{len(differing)} of {len(answers)}:\n" + "\n".join(differing[:5])
    assert accepted <= len(answers) // 100, accepted
    assert len(broken) >= 8, broken
