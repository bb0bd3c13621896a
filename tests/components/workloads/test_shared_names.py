"""Names that workloads share with the library in the container, and assumptions about the platform's resources."""

from __future__ import annotations

import re
from pathlib import Path

from flexspot_runtime.interruption import GRACE_VARIABLE, INTERRUPTED_EXIT_CODE, MARKS_VARIABLE
from flexspot_runtime.names import CHECKPOINT_VARIABLE, INDEX_VARIABLE, JOB_VARIABLE

from flexspot.capacity.catalog.platform import MOUNT_GROUP, POD_USER
from flexspot.capacity.workloads import requests as names
from flexspot.capacity.workloads.requests import WorkloadRequest
from flexspot.components.storage import claimed_volume as purposes
from flexspot.components.storage.claimed_volume import resolve_folder_mount

RUNTIME = Path(__file__).resolve().parents[3] / "runtime" / "flexspot_runtime"


def test_the_library_in_the_container_reads_what_the_pods_set() -> None:
    assert names.GRACE_VARIABLE == GRACE_VARIABLE
    assert names.INDEX_VARIABLE == INDEX_VARIABLE
    assert names.CHECKPOINT_VARIABLE == CHECKPOINT_VARIABLE
    assert names.JOB_VARIABLE == JOB_VARIABLE
    assert names.INTERRUPTED_EXIT_CODE == INTERRUPTED_EXIT_CODE


def test_the_library_reads_no_other_variable_of_the_platform() -> None:
    sources = "".join(path.read_text() for path in sorted(RUNTIME.glob("*.py")))

    assert set(re.findall(r'"(FLEXSPOT_[A-Z_]+)"', sources)) - {MARKS_VARIABLE} == {names.GRACE_VARIABLE, names.JOB_VARIABLE}


def test_the_claim_on_a_bucket_has_the_name_of_its_purpose() -> None:
    for purpose in purposes.PURPOSES:
        assert resolve_folder_mount("Volume v", purpose, {"team": "nlp", "namespace": "nlp"}).claim == purpose


def test_pods_run_as_the_owner_of_the_files_in_mounted_buckets() -> None:
    mount = resolve_folder_mount("Volume v", purposes.CHECKPOINTS, {"team": "nlp", "namespace": "nlp"})

    assert (mount.user, mount.group) == (POD_USER, MOUNT_GROUP)
    assert WorkloadRequest.model_fields["run_as_user"].default == POD_USER
