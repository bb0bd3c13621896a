"""Checkpoint paths in cases that no fixture of the rule covers."""

from __future__ import annotations

import pytest
from manifests import manifest, views

from flexspot.policies.inventory.views import PodSet
from flexspot.policies.rules.storage import checkpoint_places


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-lc", "set -e\npython train.py \\\n  --checkpoint-dir='/out' \\\n  --epochs 3\n"],
        ["/bin/sh", "-c", "python train.py --ckpt_path=/out; sync"],
    ],
)
def test_a_shell_script_is_read_word_by_word(command: list[str]) -> None:
    [pods] = views(PodSet, manifest("v1", "Pod", {"containers": [{"name": "train", "command": command}]}))

    assert len(list(checkpoint_places(pods, ("checkpoint", "ckpt"), ("checkpoint-dir", "ckpt-path")))) == 1
