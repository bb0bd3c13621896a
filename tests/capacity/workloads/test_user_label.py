"""For whom work is: the one label of the platform's own that a request's author gives."""

from __future__ import annotations

import pytest
from workload_plans import objects

from capacity.catalog.work_labels import USER_LABEL
from capacity.workloads.requests import WorkloadError


def test_a_request_says_for_whom_its_work_is_and_its_pods_carry_that() -> None:
    for stack, kind in (("prod-gke", "checkpointed-job"), ("prod-eks", "queued-job")):
        for each in objects(stack, kind, labels={USER_LABEL: "ana"}):
            if each["kind"] == "Job":
                assert each["spec"]["template"]["metadata"]["labels"][USER_LABEL] == "ana"
            elif each["kind"] == "JobSet":
                [pods] = [job["template"]["spec"]["template"] for job in each["spec"]["replicatedJobs"]]
                assert pods["metadata"]["labels"][USER_LABEL] == "ana"
            else:
                continue
            break
        else:
            pytest.fail("no work was rendered")
    with pytest.raises(WorkloadError):
        objects("prod-gke", "checkpointed-job", labels={USER_LABEL: "no label value"})
