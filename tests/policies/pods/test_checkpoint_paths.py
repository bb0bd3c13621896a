"""Where checkpoints go, told without quoting a value that may be a secret."""

from __future__ import annotations

from typing import Any

import pytest

from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest
from policies.inventory.views import PodSet
from policies.pods.volumes import checkpoint_places
from policies.rules.checkpoint_on_ephemeral_volume import RULE

WORDS, NAMES = ("checkpoint", "ckpt"), ("checkpoint-dir", "ckpt-path")


def places(volumes: Any = None, **container: Any) -> list[tuple[str, object]]:
    spec = {"volumes": volumes or [], "containers": [{"name": "train", **container}]}
    source = from_manifest({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec})
    pods = next(view for view in views_of(source) if isinstance(view, PodSet))
    return [(each.described, each.ends_with) for each in checkpoint_places(pods, WORDS, NAMES)]


@pytest.mark.parametrize(
    "arguments", [["--checkpoint-dir=/out"], ["--checkpoint_dir", "/out"], ["--trainer.checkpoint-dir=/out"], ["--CKPT_PATH=/out"]]
)
def test_an_argument_is_known_by_its_name_however_it_is_spelled(arguments: list[str]) -> None:
    assert len(places(args=arguments)) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--checkpoint-dir=gs://runs"],
        ["--checkpoint-dir"],
        ["--checkpoint-dir=run-1"],
        ["--load-checkpoint-dir=/in"],
        ["--ckpt-path=/in/base.pt"],
    ],
)
def test_what_is_no_folder_of_its_own_that_is_written_is_passed_over(arguments: list[str]) -> None:
    assert places(args=arguments) == []


def test_the_nearest_mount_above_a_path_decides() -> None:
    volumes: list[dict[str, Any]] = [{"name": "keep", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "fast", "emptyDir": {}}]
    mounts = [{"name": "fast", "mountPath": "/data"}, {"name": "keep", "mountPath": "/data/keep"}]

    assert places(volumes, volumeMounts=mounts, args=["--checkpoint-dir=/data/keep/run"])[0][1] == ""
    assert "emptyDir" in str(places(volumes, volumeMounts=mounts, args=["--checkpoint-dir=/data/keeper"])[0][1])


def test_the_value_of_a_variable_is_read_and_never_told() -> None:
    told = places(env=[{"name": "CHECKPOINT_DIR", "value": "/hunter2"}])

    assert told == [
        ("spec: what CHECKPOINT_DIR of container train names", "the container's own file system, which ends with the container"),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["sh", "-c", "torchrun train.py --checkpoint-dir /out"],
        ["bash", "-lc", "set -e\npython train.py \\\n  --checkpoint-dir='/out' \\\n  --epochs 3\n"],
        ["/bin/sh", "-c", "python train.py --ckpt_path=/out; sync"],
    ],
)
def test_what_a_shell_is_given_is_read_word_by_word(arguments: list[str]) -> None:
    assert len(places(command=arguments)) == 1


def test_the_rule_knows_how_trainers_call_it() -> None:
    """huggingface/transformers, TrainingArguments.output_dir; NVIDIA/Megatron-LM, --save (2026-11-25)."""
    names = RULE.defaults().texts("names")

    assert {"output-dir", "save"} <= set(names)
