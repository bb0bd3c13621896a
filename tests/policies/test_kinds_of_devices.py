"""Rules about accelerators name the right kind, and do not mistake one kind for another."""

from __future__ import annotations

import pytest
from manifests import Manifest, found, job, manifest, queues

from flexspot.capacity.values.verdict import Verdict

NVIDIA, NEURON = "nvidia.com/gpu", "aws.amazon.com/neuron"


def violations(rule: str, *objects: Manifest) -> list[str]:
    """Return message and remediation of each violation of a rule, with these objects as the complete input."""
    return [f"{each.message}; {each.remediation}" for each in found(*objects, closed=True, rule=rule) if each.verdict is Verdict.FAIL]


@pytest.mark.parametrize(
    "asked,covered,missing",
    [
        ([NEURON], ["cpu", NVIDIA], NEURON),
        ([NVIDIA], ["cpu", NEURON], NVIDIA),
        ([NVIDIA, NEURON], ["cpu", NVIDIA], NEURON),
        ([NVIDIA, NEURON], ["cpu"], f"{NEURON} and {NVIDIA}"),
        (["nvidia.com/gpu.shared"], ["cpu", NVIDIA], "nvidia.com/gpu.shared"),
        ([NEURON], ["cpu", NEURON], ""),
    ],
)
def test_a_finding_names_the_devices_that_the_queue_does_not_provide(asked: list[str], covered: list[str], missing: str) -> None:
    texts = violations("work-in-the-wrong-queue", job(*asked, labels={"kueue.x-k8s.io/queue-name": "gpus"}), *queues(*covered))

    assert bool(texts) is bool(missing)
    assert all(f"it requests {missing}, but" in each and f"has no quota of {missing}: it waits" in each for each in texts)
    assert all(f"has quota of {missing}, or" in each for each in texts)


@pytest.mark.parametrize("by", ["its queue", "its pods"])
@pytest.mark.parametrize(
    "kinds,keys",
    [
        ([NEURON], "requests.aws.amazon.com/neuron"),
        ([NVIDIA], "requests.nvidia.com/gpu"),
        ([NVIDIA, NEURON], "requests.nvidia.com/gpu and requests.aws.amazon.com/neuron"),
    ],
)
def test_a_finding_names_the_quota_keys_of_the_devices_that_a_namespace_uses(by: str, kinds: list[str], keys: str) -> None:
    space = manifest("v1", "Namespace", {}, name="team-a")

    [texts] = violations("namespace-without-gpu-quota", space, *(queues(*kinds) if by == "its queue" else [job(*kinds)]))

    assert f"with spec.hard {keys}:" in texts
