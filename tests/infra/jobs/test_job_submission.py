"""Scripts and commands before their submission, and pods' output after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client import ApiClient, Configuration

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.jobs.access import TeamCluster
from flexspot.infra.jobs.submission import LogTail, Script, command_of, first_pod, name_for, script_of, with_script
from flexspot.infra.kubeconfig import KubeAccess

if TYPE_CHECKING:
    from pathlib import Path


TRAIN = Script("train.py", "pass")


@pytest.mark.parametrize(
    "command,name",
    [
        (["train.py"], "train"),
        (["jobs/Fine_Tune.v2.py", "--lr", "1"], "fine-tune-v2"),
        (["python", "-m", "program"], "python"),
        (["torchrun", "--nnodes=2", "train.py"], "train"),
        (["/usr/bin/env"], "env"),
        (["___.py"], "job"),
        (["01_train.py"], "job-01-train"),
        ([f"{'long' * 20}.py"], "long" * 10),
    ],
)
def test_the_same_command_has_the_same_name_and_resumes(command: list[str], name: str) -> None:
    assert name_for(command) == name


def test_a_local_script_is_sent_and_a_command_of_the_image_is_not(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("pass")

    assert script_of([str(script), "--lr", "1"]) == Script("train.py", "pass")
    assert script_of(["python", "train.py"]) is None
    with pytest.raises(ExplainedError, match=r"gone\.py does not exist") as refused:
        script_of(["gone.py"])
    assert "-- python train.py" in refused.value.remedy
    script.write_bytes(b"#" * 900_001)
    with pytest.raises(ExplainedError, match="is too large: 900001 bytes, at most 900000 can be sent"):
        script_of([str(script)])


@pytest.mark.parametrize(
    "name,content,problem",
    [
        ("my train.py", b"pass", "is not a valid name for a sent script"),
        ("train.py", b"\xff\xfe", "cannot be read as text"),
    ],
)
def test_a_script_that_does_not_fit_a_configmap_is_refused_before_any_request(
    name: str, content: bytes, problem: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(ExplainedError, match=problem):
        script_of([str(tmp_path / name)])
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(ExplainedError, match=r"folder\.py is a folder"):
        script_of([str(tmp_path / "folder.py")])


@pytest.mark.parametrize(
    "kind,asked,script,launcher",
    [
        ("checkpointed-job", {"gpus": 8}, TRAIN, "ranks"),
        ("checkpointed-job", {"pods": 2}, TRAIN, "ranks"),
        ("checkpointed-job", {"gpus": 8, "launcher": None}, TRAIN, "ranks"),
        ("checkpointed-job", {"gpus": 8, "launcher": "torchrun"}, TRAIN, "torchrun"),
        ("checkpointed-job", {"gpus": 8, "launcher": "ray"}, TRAIN, "ray"),
        ("checkpointed-job", {"gpus": 1}, TRAIN, None),
        ("checkpointed-job", {"gpus": 8}, Script("run.sh", "true"), None),
        ("queued-job", {"gpus": 8}, TRAIN, None),
        ("queued-job", {"gpus": 8, "launcher": "jax"}, TRAIN, "jax"),
    ],
)
def test_a_script_uses_the_requested_launcher_and_several_ranks_the_rank_launcher(
    kind: str, asked: dict[str, Any], script: Script, launcher: str | None
) -> None:
    fields = with_script(kind, {"name": "bert", **asked}, script, ["1"])

    assert fields.get("launcher") == launcher
    # The launcher is prepended elsewhere, as to any command.
    assert fields["command"] == command_of(script, ["1"]) == [script.interpreter, f"/opt/flexspot/{script.name}", "1"]


def test_a_script_is_mounted_next_to_own_volumes_and_wrong_types_are_left_for_the_check() -> None:
    script = TRAIN
    own = {"/data": {"claim": "corpus"}}

    fields = with_script("checkpointed-job", {"name": "bert", "gpus": 8, "volumes": own}, script, ["--lr", "1"])

    assert fields["volumes"] == {"/opt/flexspot": {"config_map": "bert-script"}, **own}
    assert fields["command"] == ["python", "/opt/flexspot/train.py", "--lr", "1"]
    assert with_script("queued-job", {"name": "bert", "gpus": 8}, script, [])["command"] == ["python", "/opt/flexspot/train.py"]
    with pytest.raises(ExplainedError, match="volumes: /opt/flexspot is the folder of the script"):
        with_script("queued-job", {"name": "bert", "volumes": {"/opt/flexspot": {"claim": "x"}}}, script, [])
    # As from --set gpus=two and --set volumes=corpus.
    wrong = with_script("checkpointed-job", {"name": "bert", "gpus": "two", "volumes": "corpus"}, script, [])
    assert (wrong["gpus"], wrong["volumes"]) == ("two", "corpus")


def test_each_line_is_shown_once_and_none_of_the_same_moment_is_lost() -> None:
    tail = LogTail(TeamCluster(KubeAccess(ApiClient(Configuration())), "nlp"), "bert-0")

    assert tail.unseen("T1 a\nT2 b\nT2 c\n") == ["a", "b", "c"]
    assert tail.unseen("T1 a\nT2 b\nT2 c\nT2 d\nT3 b\n") == ["d", "b"]
    assert tail.unseen("T3 b\n") == []
    assert tail.unseen("T3 b\nT5 e\nT4 f\n") == ["e", "f"], "output and errors are two streams"
    assert tail.unseen("") == []


def pod(name: str, phase: str, created: str, index: str | None = None) -> dict[str, Any]:
    annotations = {} if index is None else {"batch.kubernetes.io/job-completion-index": index}
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}, "status": {"phase": phase}}


def test_the_output_is_that_of_the_first_pod_and_of_the_one_that_replaced_it() -> None:
    gang = [pod("one-1", "Running", "T9", "1"), pod("one-0a", "Failed", "T1", "0"), pod("one-0b", "Running", "T5", "0")]

    assert first_pod(gang) == "one-0b"
    assert first_pod([*gang[:2], pod("one-0b", "Pending", "T5", "0")]) == "one-0a", "it has written nothing yet"
    assert first_pod([pod("alone", "Running", "T1")]) == "alone"
    assert first_pod([]) is None
