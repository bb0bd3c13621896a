"""The `flexspot` command for a person: help, messages and exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_line import flexspot
from typer import BadParameter
from typer.main import get_command
from typer.testing import CliRunner

from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).resolve().parents[2]
FLEXSPOT = Path(sys.executable).with_name("flexspot")


@pytest.mark.slow
def test_help_loads_neither_the_lab_nor_a_kubernetes_client() -> None:
    program = "import sys, flexspot.infra.cli.app; print({'flexspot.lab', 'kubernetes', 'pulumi', 'yaml'} & {*sys.modules})"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert shown.stdout == "set()\n"


def test_no_command_accepts_nan_as_a_number() -> None:
    """Covers every option with a number. All commands use the same parser."""
    numbers = [
        (command, option) for command in leaves(get_command(app)) for option in command.params if option.type.name.startswith("float")
    ]
    assert len(numbers) > 20
    for command, option in numbers:
        with pytest.raises(BadParameter, match="nan is not a finite number"):
            command.make_context("it", [*required(command, option), option.opts[0], "nan"])


def leaves(group: Any) -> Iterator[Any]:
    """Yield all commands below a group."""
    for command in (group.get_command(None, name) for name in group.commands):
        yield from leaves(command) if hasattr(command, "commands") else (command,)


def required(command: Any, asked: Any) -> list[str]:
    """Return a value for each required option and argument, except `asked`."""
    needed = [option for option in command.params if option.required and option is not asked]
    return [word for option in needed for word in ((option.opts[0], "1") if option.opts[0].startswith("-") else ("1",))]


@pytest.mark.parametrize(
    "words,message",
    [
        (("lab", "begin"), "No such command 'begin'"),
        (("deploy",), "use `flexspot up`"),
        (("advise", "mix"), "use `flexspot advise job`"),
        (("refresh", "-s", "local"), "use `flexspot preview --refresh`"),
    ],
)
def test_an_unknown_command_is_bad_usage_with_its_replacement(words: tuple[str, ...], message: str) -> None:
    refused = CliRunner().invoke(app, words)

    assert refused.exit_code == 2
    assert message in refused.output
    assert "destroy" not in refused.output


def test_a_commands_line_in_lists_begins_its_help() -> None:
    for command in leaves(get_command(app)):
        assert " ".join(command.help.split()).startswith(command.short_help.rstrip(".")), command.name


def test_shell_completion_offers_commands_without_loading_them() -> None:
    offered = CliRunner().invoke(
        app, [], prog_name="flexspot", env={"_FLEXSPOT_COMPLETE": "complete_bash", "COMP_WORDS": "flexspot adv", "COMP_CWORD": "1"}
    )

    assert offered.output.split() == ["advise"]


@pytest.mark.slow
def test_an_invalid_or_missing_lab_is_bad_usage() -> None:
    refused, missing = flexspot("lab", "status", "--lab", "Not A Name"), flexspot("lab", "kubeconfig", "--lab", "never-made")

    assert (refused.returncode, missing.returncode) == (2, 2)
    assert "error: 'Not A Name' is not a name for a lab." in refused.stderr
    assert "what to do: use 1 to 32 lower-case letters" in refused.stderr
    assert "there is no lab never-made" in missing.stderr
    assert missing.stdout == ""


@pytest.mark.lab
def test_the_life_of_a_lab_from_the_command_line() -> None:
    """Start, status, kubeconfig and stop, on a lab named after this process, so that it meets no other."""
    name = f"cli-{os.getpid()}"
    try:
        started = flexspot("lab", "start", "--lab", name)
        assert started.returncode == 0, started.stderr
        assert f"lab {name} is up: 7 parts started" in started.stdout
        assert f"flexspot lab exercise --lab {name}" in started.stdout

        looked = flexspot("lab", "status", "--lab", name)
        assert looked.returncode == 0
        assert looked.stdout.count("running") == 7
        assert flexspot("lab", "status", "--lab", name, "--format", "json").stdout.count('"running"') == 7

        path = flexspot("lab", "kubeconfig", "--lab", name).stdout.strip()
        assert Path(path).read_text() == flexspot("lab", "kubeconfig", "--lab", name, "--raw").stdout
        kubectl = CHECKOUT / ".tools" / "bin" / "kubectl"
        reached = subprocess.run([kubectl, "--kubeconfig", path, "get", "nodepools"], capture_output=True, text=True, check=False)
        assert reached.returncode == 0, reached.stderr

        stopped = flexspot("lab", "stop", "--lab", name)
        assert stopped.returncode == 0
        assert "7 processes ended" in stopped.stdout
        refused = flexspot("preview", "-s", "local", "--lab", name)
        assert refused.returncode == 1
        assert f"lab {name} is not running" in refused.stderr
        after = flexspot("lab", "status", "--lab", name)
        assert after.returncode == 1
        assert after.stdout.count("stopped") >= 7
        assert "nothing to stop" in flexspot("lab", "stop", "--lab", name).stdout
    finally:
        flexspot("lab", "stop", "--lab", name, "--delete")


@pytest.mark.lab
@pytest.mark.parametrize(
    "signal_name", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.nightly(tested_by="test_an_interrupted_start_leaves_no_process"))]
)
def test_an_interrupted_start_leaves_no_process(signal_name: str) -> None:
    name = f"cut-{os.getpid()}"
    log = CHECKOUT / ".lab" / name / "logs" / "kube-apiserver.log"
    try:
        with subprocess.Popen([FLEXSPOT, "lab", "start", "--lab", name], stderr=subprocess.PIPE, text=True) as start:
            deadline = time.monotonic() + 120
            while not log.exists():
                assert time.monotonic() < deadline, "the API server was never started"
                time.sleep(0.02)
            start.send_signal(getattr(signal, signal_name))
            _, said = start.communicate(timeout=60)

        assert start.returncode == 130
        assert "interrupted." in said
        assert "Traceback" not in said
        assert "nothing to stop" in flexspot("lab", "stop", "--lab", name).stdout
    finally:
        flexspot("lab", "stop", "--lab", name, "--delete")
