"""Ordinary workloads of machine learning, modelled on public samples: a team's namespace accepts them, or refuses them for a reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from cel_evaluator import judged
from guarded_work import ANNOTATIONS, COMES, TEAM

from flexspot.policies.admission.scheduling_options import CONTAINER_LIMITS, UNQUEUED_POOLS

FOLDER = Path(__file__).with_name("ordinary_work")
TRAIN_JOBS = sorted(FOLDER.glob("train-job-*.yaml"))
ORDINARY, REFUSED = sorted({*FOLDER.glob("*.yaml")} - {*TRAIN_JOBS}), sorted(FOLDER.glob("refused/*.yaml"))
LARGE = {**ANNOTATIONS, CONTAINER_LIMITS: "cpu=192 memory=2Ti", UNQUEUED_POOLS: "l4-on-demand v6e"}

OWN_ACCOUNT = "GPU work acts as `workloads`: with a missing account it would hold GPUs and create no pods"
ALL_OF_A_SECRET = "a Secret read as a whole may show a container its node's other GPUs; a prefix makes it safe"  # noqa: S105 -- a reason
TOPOLOGY = "no queue has the topology level, so it would wait for ever"
PARTIAL = "Kueue starts all pods of a gang or none; quota of work that shrinks or grows is not tested here"
WHOLE = "teams share nodes with several GPUs as a whole: pods request all of one, and tolerate its taint"
LAUNCHER = "on a GPU node it would use CPU and memory that belong to GPUs"
JUSTIFIED = {
    "cron-job-weekly-retrain": ("part-of-a-node", WHOLE),
    "job-bionemo-pretrain": ("part-of-a-node", WHOLE),
    "job-set-actor-learner": ("launcher-on-gpu-nodes", LAUNCHER),
    "job-set-driver-depends-on": ("part-of-a-node", WHOLE),
    "job-set-mpi-launcher": ("part-of-a-node", WHOLE),
    "job-set-pytorch-resnet": ("part-of-a-node", WHOLE),
    "deployment-queue-worker": ("sees-gpus-of-others", ALL_OF_A_SECRET),
    "deployment-triton": ("sees-gpus-of-others", ALL_OF_A_SECRET),
    "job-deepspeed-llama": ("sees-gpus-of-others", ALL_OF_A_SECRET),
    "job-axolotl": ("pods-that-never-start", OWN_ACCOUNT),
    "job-embed-backfill": ("pods-that-never-start", OWN_ACCOUNT),
    "job-jax-tpu": ("pods-that-never-start", OWN_ACCOUNT),
    "job-neuron-compile": ("pods-that-never-start", OWN_ACCOUNT),
    "job-set-gemma-tpu": ("pods-that-never-start", OWN_ACCOUNT),
    "job-set-jax-multislice": ("label-of-kueues-own", "exclusive-topology keeps pods of others from whole pools"),
    "job-set-network-fsdp": ("label-of-kueues-own", TOPOLOGY),
    "job-torchrun-gang": ("label-of-kueues-own", TOPOLOGY),
    "job-tokenize": ("label-of-kueues-own", PARTIAL),
    "job-wandb-sweep": ("label-of-kueues-own", PARTIAL),
    "ray-job-tune-elastic": ("label-of-kueues-own", PARTIAL),
}
"""Ordinary work that is refused, with the first rule that refuses it and the reason."""

RULES = {
    "deployment-long-grace": "grace-beyond-the-platforms",
    "deployment-tolerates-everything": "tolerates-too-much",
    "job-gvisor": "field-not-allowed",
    "job-host-path": "pods-that-never-start",
    "job-privileged": "pods-that-never-start",
    "job-set-host-network": "pods-that-never-start",
    "notebook-anti-affinity-everywhere": "affinity-to-others",
    "pod-node-name": "placed-by-hand",
    "pytorch-job-volcano": "placed-by-hand",
    "stateful-set-node-critical": "priority-of-others",
}
"""The rules that refuse the files in `refused`."""


def judged_file(file: Path) -> dict[str, list[str]] | None:
    read: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return judged(COMES, read, namespace_labels={"flexspot.dev/team": TEAM}, namespace_annotations=LARGE)


def broken(file: Path) -> dict[str, list[str]]:
    found = judged_file(file)
    assert found is not None, "no rule looks at its kind"
    return {rule: problems for rule, problems in found.items() if problems}


@pytest.mark.parametrize("file", ORDINARY, ids=lambda file: file.stem)
def test_a_team_may_submit_it_unless_there_is_a_reason(file: Path) -> None:
    rule, _ = JUSTIFIED.get(file.stem, (None, ""))

    found = broken(file)

    assert next(iter(found), None) == rule, found


@pytest.mark.parametrize("file", REFUSED, ids=lambda file: file.stem)
def test_it_is_refused_for_its_reason(file: Path) -> None:
    assert set(broken(file)) == {RULES[file.stem]}


@pytest.mark.parametrize("file", TRAIN_JOBS, ids=lambda file: file.stem)
def test_no_rule_judges_a_train_job(file: Path) -> None:
    """The guide on the guarantee says so: nothing here runs one, and its controller would create a JobSet that no rule judges."""
    assert judged_file(file) is None


def test_the_collection_has_every_kind_of_work() -> None:
    kinds = Counter(yaml.safe_load(file.read_text(encoding="utf-8"))["kind"] for file in ORDINARY)

    assert kinds.total() >= 60
    assert kinds.keys() >= {"Job", "CronJob", "JobSet", "RayJob", "RayCluster", "LeaderWorkerSet", "Notebook", "Deployment", "StatefulSet"}
    assert {*JUSTIFIED} <= {file.stem for file in ORDINARY}
