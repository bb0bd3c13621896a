"""`flexspot render` on the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.cli.app import app

pytestmark = pytest.mark.slow

TRAINER = ("-s", "prod-eks", "--team", "nlp", "--class", "training", "--name", "bert", "--image", "reg.example.com/bert:1.4")
BERT = (*TRAINER, "--gpus", "8")


def flexspot(*arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, arguments)
    if isinstance(answer.exception, ExplainedError):
        raise answer.exception
    return answer.exit_code, answer.output


def test_a_job_is_printed_as_yaml_with_the_command_behind_two_hyphens() -> None:
    code, shown = flexspot(
        *("render", "checkpointed-job", *BERT, "--cpu", "80", "--memory", "1Ti", "-e", "A=b=c"),
        *("--capacity", "spot", "--set", "retries=5", "--set", "labels={example.com/run: x}", "--", "python", "train.py", "--lr", "1"),
    )

    [job] = yaml.safe_load_all(shown)
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert code == 0
    assert shown.startswith("# CheckpointedJob, for the cluster of stacks/Pulumi.prod-eks.yaml\n")
    assert container["command"] == ["python", "train.py", "--lr", "1"]
    assert {"name": "A", "value": "b=c"} in container["env"]
    assert container["resources"]["requests"] == {"cpu": "80", "memory": "1Ti", "nvidia.com/gpu": "8"}
    assert (job["spec"]["backoffLimit"], job["metadata"]["labels"]["example.com/run"]) == (5, "x")


def test_a_gpu_is_selected_by_name_or_memory_and_a_refusal_lists_the_available_ones() -> None:
    _, by_name = flexspot("render", "checkpointed-job", *BERT, "--gpu", "h200", "--gpu", "a100")
    _, by_memory = flexspot("render", "checkpointed-job", *BERT, "--gpu-memory", "80")

    assert "- a100-spot\n" in by_name
    assert "- h100-reserved\n" not in by_name
    assert "- h100-reserved\n" in by_memory
    assert "- a100-spot\n" not in by_memory
    with pytest.raises(ExplainedError) as refused:
        flexspot("render", "checkpointed-job", *BERT, "--gpu-memory", "141")
    assert "available: h100-80gb (80 GB; h100-reserved), a100-40gb (40 GB; a100-spot)" in str(refused.value)


def test_secrets_are_named_by_their_name_and_key_and_never_read() -> None:
    secret = ("--secret", "WANDB_API_KEY=wandb:token", "--pull-secret", "registry")
    _, shown = flexspot("render", "checkpointed-job", *BERT, *secret, "--format", "json")

    [job] = json.loads(shown)
    pod = job["spec"]["template"]["spec"]
    assert {"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "token"}}} in pod["containers"][0]["env"]
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    for wrong in ("WANDB_API_KEY=wandb", "wandb:token"):
        code, printed = flexspot("render", "checkpointed-job", *BERT, "--secret", wrong)
        assert code == 2
        assert "Write for example --secret WANDB_API_KEY=wandb:token" in " ".join(printed.split())


def test_a_template_needs_no_name_and_no_image() -> None:
    code, shown = flexspot("render", "queued-job", "-s", "dev-gke", "-t", "students", "-c", "spot-low", "--template")

    assert code == 0
    assert "  # FILL IN: the name, here and in the lines that repeat it" in shown
    assert yaml.safe_load(shown)["metadata"]["namespace"] == "students"


def test_every_problem_is_reported_with_exit_code_2() -> None:
    with pytest.raises(ExplainedError) as refused:
        flexspot("render", "checkpointed-job", "-s", "prod-eks", "--team", "npl", "--name", "bert", "--image", "bert", "--class", "x")

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert refused.value.problem == "CheckpointedJob bert cannot be rendered."
    assert [each.partition(" ")[0] for each in refused.value.evidence] == ["image", "team", "workload_class"]
    with pytest.raises(ExplainedError, match="--stack: there is no stack prod"):
        flexspot("render", "checkpointed-job", "-s", "prod")
    with pytest.raises(ExplainedError, match=r"kind \(is 'job'\): is not a kind of workload"):
        flexspot("render", "job", "-s", "local")


@pytest.mark.parametrize(
    "written,problem",
    [
        (("--set", "retries"), "is not FIELD=VALUE"),
        (("-e", "=x"), "is not NAME=VALUE"),
        (("--set", "a=[1"), "is not YAML"),
        (("-e", "A=1", "--set", "env={B: x}"), "--set: another option also gives env"),
    ],
)
def test_a_malformed_pair_is_bad_usage(written: tuple[str, str], problem: str) -> None:
    code, shown = flexspot("render", "checkpointed-job", *BERT, *written)

    assert code == 2
    assert problem in shown


def test_rendering_loads_neither_pulumi_nor_the_clouds() -> None:
    program = f"""
import sys
from flexspot.infra.cli.app import main
sys.argv = ["flexspot", "render", "checkpointed-job", *{BERT!r}]
try:
    main()
finally:
    heavy = {{"pulumi", "pulumi_policy", "pulumi_aws", "pulumi_gcp", "pulumi_kubernetes", "kubernetes", "grpc", "google", "boto3", "lab"}}
    print(sorted({{name.partition(".")[0] for name in sys.modules}} & heavy), file=sys.stderr)
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert printed.stderr == "[]\n"
    assert "kind: Job" in printed.stdout
