"""The admission policies on a real API server: they say what lint says, they refuse in a team's namespace alone, and Kueue goes its way."""

from __future__ import annotations

import copy
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from admission_ground import Asked, completed, holding, served
from admission_parity import namespace_object, told_by_rules, written
from kubernetes.client.exceptions import ApiException
from program_declarations import as_shipped, plan_of
from provider_driver import definition_of
from queue_fixtures import FOUR_L4, QueueGround, queues_of
from queue_objects import admission_objects
from server_questions import DEFINITION
from stack_readings import readings_of

from capacity.catalog.node_labels import ENVIRONMENT_LABEL, GPU_RESOURCE, OWNER_LABEL, TEAM_LABEL
from lab.cluster import POD, condition, wait_until_established
from lab.exercise.play import JOB
from policies.admission.guarantee import NAME
from policies.admission.scheduling_options import MOST_GPUS, facts_of
from policies.core import read_source
from policies.inventory.reading.source import from_manifest
from policies.judging import Level, Settings
from policies.lint.configuration import Configuration
from policies.lint.formats import as_text
from policies.lint.run import lint
from policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from queue_objects import Register

    from lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

TEAM, ELSEWHERE = "team-alpha", "without-a-team"
"""The first is a team of the local stack."""

STOPPING = {rule.name for rule in all_rules() if rule.level is Level.MANDATORY}

DIES = "job-dies-on-interruption"


@pytest.fixture
def asked(cluster: Cluster) -> Iterator[Asked]:
    """The shipped local stack's policies, with a namespace that they think a team's and one that is nobody's."""
    for name, labels in ((TEAM, {TEAM_LABEL: TEAM}), (ELSEWHERE, {})):
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    every = [each.inputs for each in as_shipped("local").made.values() if "admissionregistration.k8s.io" in each.type]
    # What guards a guarantee is no rule of lint's: test_hostile_submissions.py asks of it.
    shipped = [each for each in every if not each["metadata"]["name"].startswith(NAME)]
    with holding(cluster, shipped, TEAM) as found:
        yield found


def broken(each: KubeObject) -> dict[str, list[str]]:
    """What lint finds wrong with an object among all that the local stack declares, by rule."""
    class_of_pods = each["spec"].get("template", {}).get("spec", {}).get("priorityClassName", "")
    facts = facts_of(plan_of("local"))
    most = int(facts.get(f"{MOST_GPUS}.{class_of_pods}", facts[MOST_GPUS]))
    own = read_source(from_manifest(namespace_object(each, {TEAM_LABEL: TEAM} if each["metadata"]["namespace"] == TEAM else {})))
    told = told_by_rules(each, [*readings_of("local"), own], Settings(values={"gpu-container-above-maximum": {MOST_GPUS: most}}))
    return {rule: said for rule, said in told.items() if said}


def test_the_server_says_of_every_fixture_what_lint_says_refusing_it_to_a_team_and_warning_others(asked: Asked) -> None:
    refused: set[str] = set()
    for each in written():
        if not served(each.manifest):
            continue
        elsewhere = asked.ask(completed(each.manifest, ELSEWHERE))
        if elsewhere.taken is None:
            assert not elsewhere.denied, "Kubernetes itself refuses it, before any policy is asked"
            continue
        # What lint is asked about is what policies see: the object with all that the server adds.
        found = broken(elsewhere.taken)
        assert set(elsewhere.warned) == set(found), each
        assert all(said in found[rule] for rule, said in elsewhere.warned.items())

        of_team = asked.ask(completed(each.manifest, TEAM))
        moved = copy.deepcopy(elsewhere.taken)
        moved["metadata"]["namespace"] = TEAM
        found = broken(moved)
        # Of what a refusal could name it names the first; what only tells is told of what is not refused.
        stopping = set(found) & STOPPING
        assert bool(of_team.denied) == bool(stopping), (each, of_team, found)
        assert set(of_team.denied) <= stopping
        assert of_team.denied or set(of_team.warned) == set(found)
        assert all(said in found[rule] for rule, said in {**of_team.denied, **of_team.warned}.items())
        refused |= set(of_team.denied)
    assert refused >= {"gpu-container-without-limit", "grace-exceeds-notice", DIES, "gpu-key-in-limit-range"}


AMOUNT = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
"""What a definition says of an amount of a resource, as the kinds of frameworks have it."""


def of_fields(**fields: Any) -> KubeObject:
    return {"type": "object", "properties": fields}


def of_template() -> KubeObject:
    amounts = {"type": "object", "additionalProperties": AMOUNT}
    container = of_fields(name={"type": "string"}, image={"type": "string"}, resources=of_fields(limits=amounts, requests=amounts))
    spec = of_fields(
        containers={"type": "array", "items": container},
        terminationGracePeriodSeconds={"type": "integer", "format": "int64"},
        priorityClassName={"type": "string"},
    )
    return of_fields(template=of_fields(spec=spec))


def definition(group: str, kind: str, spec: KubeObject) -> KubeObject:
    return definition_of(f"{kind.lower()}s", group, kind, of_fields(spec=spec))


OF_FRAMEWORKS: dict[str, tuple[KubeObject, Callable[[KubeObject], KubeObject]]] = {
    "RayCluster": (
        definition(
            "ray.io", "RayCluster", of_fields(headGroupSpec=of_template(), workerGroupSpecs={"type": "array", "items": of_template()})
        ),
        lambda pod: {"headGroupSpec": {"template": {"spec": pod}}, "workerGroupSpecs": [{"template": {"spec": pod}}]},
    ),
    "PyTorchJob": (
        definition("kubeflow.org", "PyTorchJob", of_fields(pytorchReplicaSpecs={"type": "object", "additionalProperties": of_template()})),
        lambda pod: {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": pod}}}},
    ),
    "LeaderWorkerSet": (
        definition(
            "leaderworkerset.x-k8s.io",
            "LeaderWorkerSet",
            of_fields(
                leaderWorkerTemplate=of_fields(
                    **{each: of_template()["properties"]["template"] for each in ("leaderTemplate", "workerTemplate")}
                )
            ),
        ),
        lambda pod: {"leaderWorkerTemplate": {"leaderTemplate": {"spec": pod}, "workerTemplate": {"spec": pod}}},
    ),
}


@pytest.fixture
def asked_of_frameworks(cluster: Cluster, asked: Asked) -> Iterator[Asked]:
    """The policies, beside the definitions of frameworks' kinds, which are gone afterwards."""
    definitions = {each["metadata"]["name"]: each for each, _ in OF_FRAMEWORKS.values()}
    cluster.apply(*definitions.values())
    wait_until_established(cluster, definitions)
    yield asked
    for name in definitions:
        cluster.delete(DEFINITION, name)

    def gone(found: list[KubeObject]) -> bool:
        return not definitions.keys() & {each["metadata"]["name"] for each in found}

    cluster.wait_for(DEFINITION, gone, "the end of the definitions")


AMOUNTS: tuple[int | str, ...] = (9, "9", "9000m", 1, "1", 0)


# One test for all kinds: definitions that go and come again are not served for a moment.
def test_an_amount_is_judged_alike_however_it_is_written_and_whatever_kind_it_is_of(asked_of_frameworks: Asked) -> None:
    for (kind, (defined, spec_of)), amount, field in product(OF_FRAMEWORKS.items(), AMOUNTS, ("limits", "requests")):
        pod = {
            "terminationGracePeriodSeconds": 600,
            "containers": [{"name": "work", "image": "work:1", "resources": {field: {GPU_RESOURCE: amount}}}],
        }
        api = f"{defined['spec']['group']}/v1"
        each = {"apiVersion": api, "kind": kind, "metadata": {"name": "work", "namespace": ELSEWHERE}, "spec": spec_of(pod)}

        answer = asked_of_frameworks.ask(each)

        assert answer.taken is not None, answer.refusal
        found = broken(answer.taken)
        assert set(answer.warned) == set(found), (kind, amount, field)
        # Lint shows the number that is meant, the server what is written.
        assert amount == "9000m" or {rule: said for rule, said in answer.warned.items() if said not in found[rule]} == {}


def test_a_violation_that_somebody_accepted_in_writing_is_let_through_until_its_last_day(asked: Asked) -> None:
    quota: KubeObject = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "accepted", "namespace": TEAM},
        "spec": {"hard": {"limits.nvidia.com/gpu": "1"}},
    }

    def with_reason(reason: str) -> KubeObject:
        return quota | {"metadata": quota["metadata"] | {"annotations": {"flexspot.dev/ignore-quota-key-never-enforced": reason}}}

    assert asked.ask(quota).denied
    assert asked.ask(with_reason("we count by hand; until=2999-12-31")).taken is not None
    assert asked.ask(with_reason("we count by hand; until=2020-01-31")).denied
    assert asked.ask(with_reason("")).denied


def platform(cluster: Cluster, register: Register) -> AbstractContextManager[QueueGround]:
    """A node of four GPUs, two of each team."""
    pool = {"name": "l4-spot", "machine": FOUR_L4, "capacity_type": "spot", "max_nodes": 1, "serves": ["training", "interactive"]}
    teams = [{"name": "alpha", "shares": {"l4-spot": 2}}, {"name": "beta", "shares": {"l4-spot": 2}}]
    return queues_of(cluster, register, {"l4-spot": 1}, pools=[pool], teams=teams)


def fragile(job: KubeObject) -> KubeObject:
    """The Job without what lets it survive an interruption."""
    del job["spec"]["podFailurePolicy"]
    job["spec"]["backoffLimit"] = 0
    return job


def test_a_teams_wrong_job_is_refused_in_the_words_that_lint_prints(cluster: Cluster, register: Register, tmp_path: Path) -> None:
    with platform(cluster, register) as ground, holding(cluster, admission_objects(ground.plan, register), ground.own("alpha")) as asked:
        wrong = fragile(ground.job("alpha", "wrong"))
        (tmp_path / "platform.yaml").write_text(yaml.safe_dump_all([*ground.objects, wrong]))

        printed = as_text(lint([str(tmp_path)], Configuration()))
        told = asked.ask(wrong)

        assert told.taken is None
        message, remedy = told.denied[DIES].split(". To fix it: ")
        assert f"{DIES} (FLX024): Job {ground.own('alpha')}/wrong: {message}\n  To fix it: {remedy}\n" in printed

        # Nor does it become wrong: the number of retries is what the API server lets people change of a Job that is there.
        wrong["spec"]["backoffLimit"] = 3
        cluster.create(wrong)
        with pytest.raises(ApiException) as refused:
            cluster.patch("batch/v1/Job", "wrong", {"spec": {"backoffLimit": 0}}, ground.own("alpha"))
        assert DIES in str(refused.value.body)
        cluster.patch("batch/v1/Job", "wrong", {"spec": {"backoffLimit": 4}}, ground.own("alpha"))


def test_right_jobs_run_are_preempted_and_run_again_and_no_update_of_kueue_is_refused(cluster: Cluster, register: Register) -> None:
    with platform(cluster, register) as ground, holding(cluster, admission_objects(ground.plan, register), ground.own("alpha")):
        for number in range(4):
            ground.submit("alpha", f"alpha-{number}")
        ground.wait_for_running("alpha", "alpha-0", "alpha-1", "alpha-2", "alpha-3")

        ground.submit("beta", "beta-0", gpus=2)
        ground.wait_for_running("beta", "beta-0")
        preempted = [job for job, each in ground.workloads("alpha").items() if condition(each, "Preempted")]
        assert len(preempted) == 2
        ground.finish("beta", "beta-0")
        pods = ground.wait_for_running("alpha", "alpha-0", "alpha-1", "alpha-2", "alpha-3")

        owned = {ENVIRONMENT_LABEL: "test", OWNER_LABEL: "ann", TEAM_LABEL: ground.own("alpha")}
        jobs = cluster.list(JOB, ground.own("alpha"))
        assert all(owned.items() <= each["metadata"]["labels"].items() for each in [*pods, *jobs]), "they have them from their namespace"


def test_what_was_there_before_the_policies_goes_on(cluster: Cluster, register: Register) -> None:
    with platform(cluster, register) as ground:
        ground.redeploy(register, teams=[each | {"stop": "hold"} for each in ground.settings["teams"]])
        cluster.create(fragile(ground.job("alpha", "old")))
        ground.wait_for_refusal("alpha", "old", "is inactive")

        with holding(cluster, admission_objects(ground.plan, register), ground.own("alpha")) as asked:
            assert DIES in asked.ask(fragile(ground.job("alpha", "new"))).denied
            ground.redeploy(register)

            # Kueue writes a selector into it, starts it, and its pods are made.
            ground.wait_for_running("alpha", "old")
            assert cluster.list(POD, ground.own("alpha"))
