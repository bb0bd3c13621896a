"""Python and CEL find the same storage of checkpoints, for all nestings of mounts and all ways to name a place."""

from __future__ import annotations

from typing import Any

import pytest
from admission_parity import rule_messages
from cel_evaluator import judged
from hypothesis import given
from hypothesis import strategies as st
from manifests import manifest

from flexspot.policies.admission.policy import admission_policies

CHECKPOINT = "checkpoint-on-ephemeral-volume"
STOPS = next(each for each in admission_policies({}) if CHECKPOINT in {validation.rule for validation in each.validations})

PATHS = ("/", "/data", "/data/a", "/data/a/b", "/data/a/b/c", "/dat", "/checkpoints", "/data/ckpt", "/a.b/c")
SOURCES = ({"emptyDir": {}}, {"hostPath": {"path": "/x"}}, {"ephemeral": {}}, {}, {"persistentVolumeClaim": {"claimName": "c"}})

path_given = st.sampled_from([*PATHS, "/data/a/b/c/d", "/data/a/b/", "/data/a/model.pt", "/database", "gs://bucket/x", "relative", ""])
name_given = st.sampled_from(["CHECKPOINT_DIR", "trainer.ckpt-path", "saveCheckpointDir", "OTHER", "checkpoint.dir"])


@st.composite
def containers(draw: st.DrawFn, volumes: int) -> dict[str, Any]:
    mounted = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=6))
    names = [f"v{draw(st.integers(0, volumes))}" for _ in mounted]
    arguments: list[str] = []
    for name, path in draw(st.lists(st.tuples(name_given, path_given), max_size=3)):
        arguments += [f"--{name}={path}"] if draw(st.booleans()) else [f"--{name}", path]
    variables = draw(st.lists(st.tuples(name_given, path_given), max_size=4))
    return {
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in zip(names, mounted, strict=True)],
        "args": arguments,
        "env": [{"name": name, "value": path} for name, path in variables],
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    sources = draw(st.lists(st.sampled_from(SOURCES), max_size=4))
    # Some mounts name no volume.
    made = draw(st.lists(containers(len(sources)), min_size=1, max_size=6))
    pod = {
        "volumes": [{"name": f"v{number}", **source} for number, source in enumerate(sources)],
        "containers": [{"name": f"c{number}", **each} for number, each in enumerate(made)],
    }
    return manifest("batch/v1", "Job", {"template": {"spec": pod}})


def test_a_place_after_many_arguments_is_found() -> None:
    arguments = [f"--option-{number}=1" for number in range(200)]
    container = {"name": "c", "args": [*arguments, "--checkpoint-dir", "/data"], "resources": {"limits": {"nvidia.com/gpu": 1}}}
    by_forms = judged(STOPS, manifest("batch/v1", "Job", {"template": {"spec": {"containers": [container]}}}))

    assert by_forms is not None
    assert by_forms[CHECKPOINT]


@pytest.mark.slow
@given(jobs())
def test_python_and_cel_agree_about_jobs_that_lose_checkpoints(job: dict[str, Any]) -> None:
    by_forms = judged(STOPS, job)

    assert by_forms is not None
    assert by_forms[CHECKPOINT] == rule_messages(job, [])[CHECKPOINT]
