"""A copy of the project whose stack files a test may change, with the command line run from it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import command_line
import pytest
import yaml

from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import ensure_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.control_plane import LabControlPlane
    from flexspot.lab.home import LabHome

CHECKOUT = Path(__file__).resolve().parents[1]
LOCAL_RESOURCES = 77
"""Resources of the shipped local stack, including components and the stack itself."""

FOLDERS = (*command_line.SOURCE_ROOTS, "stacks")


class OwnCheckout:
    """A copy of the project whose stack files a test may change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in FOLDERS:
            # Includes compiled modules, which each command would compile again.
            shutil.copytree(CHECKOUT / name, folder / name, symlinks=True)
        for name in ("Pulumi.yaml", "__main__.py"):
            shutil.copyfile(CHECKOUT / name, folder / name)
        (folder / ".tools").mkdir()
        (folder / ".venv").symlink_to(CHECKOUT / ".venv")
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(str(folder / name) for name in command_line.SOURCE_ROOTS),
            "COLUMNS": "200",
        }

    def command(self, *arguments: str) -> list[str]:
        """Return the command line, for a process that a test starts itself."""
        return [sys.executable, "-c", "from flexspot.infra.cli.app import main; main()", *arguments]

    def flexspot(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command with this checkout's `infra` and `lab`, and the project's other packages. Return its result."""
        return command_line.flexspot(*arguments, checkout=self.folder, folder=self.folder, environment=self.environment | environment)

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """Return the output of kubectl for the checkout's lab. `given` is its standard input."""
        program = [self.folder / ".tools" / "bin" / "kubectl", "--kubeconfig", self.folder / ".lab" / "default" / "kubeconfig"]
        return subprocess.run([*program, *arguments], input=given, capture_output=True, text=True, check=True).stdout

    def change(self, stack: str, **changes: object) -> None:
        """Write a stack file: the local one with changed settings."""
        content = yaml.safe_load((self.folder / "stacks" / "Pulumi.local.yaml").read_text())
        content["config"]["flexspot:platform"] |= changes
        (self.folder / "stacks" / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(content))


@pytest.fixture
def checkout(tmp_path: Path) -> OwnCheckout:
    return OwnCheckout(tmp_path / "checkout")


@pytest.fixture(scope="session")
def checkout_of_the_lab(lab: LabControlPlane) -> OwnCheckout:
    """Return a checkout with the lab that tests share, and with the tools linked."""
    checkout = OwnCheckout(lab.home.root.parent)
    ensure_tools(checkout.folder / ".tools", Silence())
    return checkout


@pytest.fixture
def checkout_with_lab(checkout_of_the_lab: OwnCheckout, lab: LabControlPlane) -> Iterator[OwnCheckout]:
    """Yield that checkout with the project's stack files and nothing deployed. Restores both after the test."""
    yield checkout_of_the_lab
    stacks = checkout_of_the_lab.folder / "stacks"
    shutil.rmtree(stacks)
    shutil.copytree(CHECKOUT / "stacks", stacks)
    removed = checkout_of_the_lab.flexspot("destroy", "-s", "local", "--yes")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    forget_stacks(lab.home)


def forget_stacks(home: LabHome) -> None:
    """Remove the engine's state and notes that are kept with a lab."""
    for name in ("pulumi", "project"):
        shutil.rmtree(home.folder / name, ignore_errors=True)
