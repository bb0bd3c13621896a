"""For whom work is: the one label of the platform's own that a request's author gives."""

from __future__ import annotations

import pytest
from workload_plans import job_of

from capacity.catalog.work_labels import USER_LABEL
from capacity.workloads.requests import WorkloadError


@pytest.mark.parametrize("stack,kind", [("prod-gke", "checkpointed-job"), ("prod-eks", "queued-job")])
def test_a_request_says_for_whom_its_work_is_and_its_pods_carry_that(stack: str, kind: str) -> None:
    labels = job_of(stack, kind, labels={USER_LABEL: "ana"})["spec"]["template"]["metadata"]["labels"]

    assert labels[USER_LABEL] == "ana"
    with pytest.raises(WorkloadError):
        job_of(stack, kind, labels={USER_LABEL: "no label value"})
