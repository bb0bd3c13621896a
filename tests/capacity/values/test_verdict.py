"""How an object is named, and what the words of a verdict are."""

from __future__ import annotations

import pytest

from flexspot.capacity.values.verdict import ObjectIdentity


@pytest.mark.parametrize(
    "identity,written,described",
    [
        (ObjectIdentity("batch/v1", "Job", "train", "team-a"), "batch/v1/Job/team-a/train", "Job team-a/train"),
        (ObjectIdentity("karpenter.sh/v1", "NodePool", "gpu"), "karpenter.sh/v1/NodePool/gpu", "NodePool gpu"),
    ],
)
def test_an_object_is_named_for_machines_and_for_sentences(identity: ObjectIdentity, written: str, described: str) -> None:
    assert str(identity) == written
    assert identity.described == described
