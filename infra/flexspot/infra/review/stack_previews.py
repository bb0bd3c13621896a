"""A stack at one revision: its offline preview, run as a process of its own in a copy of that revision."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from flexspot.capacity.values.errors import ExplainedError

_WHY = ("error: ", "  | ", "what to do: ")
_LINES = 40
_MANDATORY = "mandatory"
_INTERRUPTED = 130
_CHECKOUT = "(checkout)"


@dataclass(frozen=True)
class PolicyVerdict:
    """What a policy says of a resource (`urn`, "" for the stack as a whole). `mandatory` ones keep the stack from being deployed."""

    policy: str
    urn: str
    message: str
    mandatory: bool

    @property
    def resource(self) -> str:
        """The resource as people read it: the last word of its type, and its name."""
        parts = self.urn.split("::", 3)
        return f"{parts[2].rpartition(':')[2]} {parts[3]}" if len(parts) == 4 else ""  # noqa: PLR2004 -- of a URN


@dataclass(frozen=True)
class StackPreview:
    """What a preview said. `plan` is the path of the plan file, None where there is no plan.

    `refused` are the lines that say why it failed, none where the stack can be deployed.
    """

    plan: Path | None
    refused: tuple[str, ...] = ()

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The resources, as the plan file has them."""
        return self._content["resources"]

    @property
    def verdicts(self) -> list[PolicyVerdict]:
        """What the policies said."""
        return [
            PolicyVerdict(each["policy"], each["resource"] or "", each["message"], each["level"] == _MANDATORY)
            for each in self._content["policies"]
        ]

    @cached_property
    def _content(self) -> dict[str, Any]:
        return {"resources": [], "policies": []} if self.plan is None else json.loads(self.plan.read_text(encoding="utf-8"))


def stack_preview(stack: str, project: Path, checkout: Path, plan: Path) -> StackPreview:
    """Previews `stack` of the project in the folder `project` of a copy of the repository, and writes the plan file `plan`.

    Whatever keeps it from being deployed is in what is returned. Raises ExplainedError where the command cannot be run at all.
    """
    command = [*_command(checkout), "preview", "--offline", "--stack", stack, "--plan-out", str(plan)]
    try:
        done = subprocess.run(  # noqa: S603 -- this very command
            command,
            cwd=project,
            env=_environment(checkout),
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except OSError as error:
        raise ExplainedError(
            f"a preview of stack {stack} cannot be run: {error.strerror}.", "fix it, and run the command again."
        ) from error
    if done.returncode < 0 or done.returncode == _INTERRUPTED:
        remedy = "run the same command again; a machine short of memory kills programs."
        raise ExplainedError(f"the preview of stack {stack} was killed ({done.returncode}); it is not reviewed.", remedy)
    there = plan if plan.is_file() else None
    if there is not None:
        # Where the copies lie is no part of the change.
        there.write_text(there.read_text(encoding="utf-8").replace(json.dumps(str(checkout))[1:-1], _CHECKOUT), encoding="utf-8")
    if done.returncode == 0 and there is not None:
        return StackPreview(there)
    told = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(_WHY)]
    return StackPreview(
        there, tuple(told or done.stderr.splitlines()[-5:] or [f"it exited with {done.returncode} and no output."])[:_LINES]
    )


def _command(checkout: Path) -> list[str]:
    # A folder of the project must not take the place of a library's module; Flexspot's own repository is to run its own code.
    return [sys.executable, *([] if _is_flexspot(checkout) else ["-P"]), "-m", "flexspot"]


def _environment(checkout: Path) -> dict[str, str]:
    own = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    if _is_flexspot(checkout):
        others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        own["PYTHONPATH"] = os.pathsep.join([*(str(each.parent) for each in sorted(checkout.glob("*/flexspot"))), *others])
        # A copy has no environment of its own; its policy pack starts in the first Python on PATH, which is to be this one.
        own["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), *filter(None, [os.environ.get("PATH")])])
    return {**os.environ, **own}


def _is_flexspot(checkout: Path) -> bool:
    return (checkout / "infra" / "flexspot" / "infra" / "program.py").is_file()
