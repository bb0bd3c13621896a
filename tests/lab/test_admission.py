"""The admission policies on a real API server: they refuse a team's wrong work with lint's messages, and do not hinder Kueue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from admission_fixtures import with_policies
from kubernetes.client.exceptions import ApiException
from queue_fixtures import GUARDS, two_teams
from queue_objects import admission_objects

from flexspot.capacity.catalog.node_labels import ENVIRONMENT_LABEL, OWNER_LABEL, TEAM_LABEL
from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB
from flexspot.policies.lint.configuration import Configuration
from flexspot.policies.lint.formats import as_text
from flexspot.policies.lint.run import lint

if TYPE_CHECKING:
    from pathlib import Path

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

DIES = "job-dies-on-interruption"


def fragile(job: KubeObject) -> KubeObject:
    """Return the Job without the fields that let it survive an interruption."""
    del job["spec"]["podFailurePolicy"]
    job["spec"]["backoffLimit"] = 0
    return job


def test_a_teams_wrong_job_is_refused_with_lints_message(cluster: Cluster, register: Register, tmp_path: Path) -> None:
    with (
        two_teams(cluster, register, without=GUARDS) as platform,
        with_policies(cluster, admission_objects(platform.plan, register), platform.own("alpha")) as server,
    ):
        wrong = fragile(platform.job("alpha", "wrong"))
        (tmp_path / "platform.yaml").write_text(yaml.safe_dump_all([*platform.objects, wrong]))

        printed = as_text(lint([str(tmp_path)], Configuration()))
        answer = server.ask(wrong)

        assert answer.taken is None
        message, remedy = answer.denied[DIES].split(". To fix it: ")
        assert f"{DIES} (FLX024): Job {platform.own('alpha')}/wrong: {message}\n  To fix it: {remedy}\n" in printed

        # With a suppression, it is accepted until the suppression's last day, by the API server's own clock.
        for reason, taken in (("it resumes by hand; until=2999-12-31", True), ("it resumes by hand; until=2020-01-31", False), ("", False)):
            excused = fragile(platform.job("alpha", "excused", annotations={f"flexspot.dev/ignore-{DIES}": reason}))
            assert (server.ask(excused).taken is not None) == taken, reason

        # An update is not refused, either: the number of retries is the field of an existing Job that the API server lets users change.
        wrong["spec"]["backoffLimit"] = 3
        cluster.create(wrong)
        with pytest.raises(ApiException) as refused:
            cluster.patch("batch/v1/Job", "wrong", {"spec": {"backoffLimit": 0}}, platform.own("alpha"))
        assert DIES in str(refused.value.body)
        cluster.patch("batch/v1/Job", "wrong", {"spec": {"backoffLimit": 4}}, platform.own("alpha"))


def test_right_jobs_run_are_preempted_and_run_again_and_no_update_of_kueue_is_refused(cluster: Cluster, register: Register) -> None:
    with (
        two_teams(cluster, register, without=GUARDS) as platform,
        with_policies(cluster, admission_objects(platform.plan, register), platform.own("alpha")),
    ):
        for number in range(4):
            platform.submit("alpha", f"alpha-{number}")
        platform.wait_for_running("alpha", "alpha-0", "alpha-1", "alpha-2", "alpha-3")

        platform.submit("beta", "beta-0", gpus=2)
        platform.wait_for_running("beta", "beta-0")
        preempted = [job for job, each in platform.workloads("alpha").items() if condition(each, "Preempted")]
        assert len(preempted) == 2
        platform.finish("beta", "beta-0")
        pods = platform.wait_for_running("alpha", "alpha-0", "alpha-1", "alpha-2", "alpha-3")

        owned = {ENVIRONMENT_LABEL: "test", OWNER_LABEL: "ann", TEAM_LABEL: platform.own("alpha")}
        jobs = cluster.list(JOB, platform.own("alpha"))
        assert all(owned.items() <= each["metadata"]["labels"].items() for each in [*pods, *jobs]), "they have them from their namespace"


@pytest.mark.nightly(
    tested_by="test_kueue_starts_stops_and_places_a_job_without_being_judged, "
    "test_right_jobs_run_are_preempted_and_run_again_and_no_update_of_kueue_is_refused"
)
def test_work_from_before_the_policies_continues(cluster: Cluster, register: Register) -> None:
    with two_teams(cluster, register, without=GUARDS) as platform:
        platform.redeploy(register, teams=[each | {"stop": "hold"} for each in platform.settings["teams"]])
        cluster.create(fragile(platform.job("alpha", "old")))
        platform.wait_for_refusal("alpha", "old", "is inactive")

        with with_policies(cluster, admission_objects(platform.plan, register), platform.own("alpha")) as server:
            assert DIES in server.ask(fragile(platform.job("alpha", "new"))).denied
            platform.redeploy(register)

            # Kueue adds a selector to it and starts it, and its pods are created.
            platform.wait_for_running("alpha", "old")
            assert cluster.list(POD, platform.own("alpha"))
