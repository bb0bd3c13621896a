"""Identifiers and descriptions of objects."""

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
def test_an_object_has_an_identifier_and_a_description(identity: ObjectIdentity, written: str, described: str) -> None:
    assert str(identity) == written
    assert identity.described == described
