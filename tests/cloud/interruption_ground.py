"""Where interruptions are tried: a machine, a lab, a stack, and what an undisturbed deployment of it is like."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloud_answers import POOL
from cloud_refusals import GKE_CLUSTER
from cloud_world import CloudWorld
from credential_servers import write_service_account
from interrupted_runs import Run

from infra.deployment.cloud_run import PLUGINS
from lab.control_plane import ControlPlane
from lab.home import LabHome
from lab.progress import Silence

if TYPE_CHECKING:
    from lab.tools.build import Tools

Found = tuple[str, ...]
"""All that there is, sorted, each as often as it is there."""

NOTHING, BASE, EDITED = "nothing", "as shipped", "edited"


@dataclass(frozen=True)
class Undisturbed:
    """What there is after an undisturbed run, and how long the run took."""

    found: Found
    seconds: float


@dataclass(frozen=True)
class Wish:
    """What to try: which stack, with the official Kubernetes plugin or a stand-in, whole or with one pool and one team."""

    stack: str
    official: bool = False
    small: bool = False


class InterruptionGround:
    """One stack on one machine. `reference` is what there is in each of the three states that the stack can be in."""

    def __init__(self, folder: Path, tools: Tools, google: str, wish: Wish) -> None:
        self.stack = wish.stack
        self.world = CloudWorld(folder, tools, {"google": google})
        write_service_account(folder / "service-account.json", google)
        self._is_local = wish.stack == "local"
        root = self.world.checkout.folder / ".lab" if self._is_local else folder / "labs"
        self._lab = ControlPlane(LabHome(root, "default"))
        self._shipped: dict[str, Any] = {}
        self.reference: dict[str, Undisturbed] = {}
        try:
            self._prepare(tools, wish)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the lab."""
        self._lab.stop(Silence(), delete=True)

    def _prepare(self, tools: Tools, wish: Wish) -> None:
        self._lab.start(tools, Silence())
        self.world.serve_clusters_by(self._lab, tools)
        # Some of it takes a while, so that interruptions meet what has begun and is not done.
        self.world.cloud.configure(seconds={GKE_CLUSTER: 1.5, POOL: 0.7, "other": 0.1})
        if wish.official:
            self._use_official(tools)
        elif self._is_local:
            # As on a machine without the official parts: the stand-in of the lab itself.
            shutil.rmtree(self.world.home / "plugins")
        self._shipped = self._settings(wish)
        self.use(BASE)
        self.reference[NOTHING] = Undisturbed(self.found(), 0.0)

    def measure(self) -> None:
        """Deploys, edits and destroys once without any disturbance, to know what that leaves and how long it takes."""
        for state in (BASE, EDITED, NOTHING):
            begun = time.monotonic()
            problem = self.run("destroy" if state == NOTHING else "up", state)
            if problem:
                raise RuntimeError(f"an undisturbed run of {self.stack} ({state}) went wrong: {problem}")
            self.reference[state] = Undisturbed(self.found(), time.monotonic() - begun)

    def use(self, state: str) -> None:
        """Writes the settings of a state into the stack file; those of NOTHING are the shipped ones."""
        self.world.change(self.stack, **(self._edited() if state == EDITED else self._shipped))

    def to_run(self, command: str, log: str) -> Run:
        """A command that can be interrupted; what it prints is in the file `log` of the world's folder."""
        world = self.world
        return Run(world.command(*self.arguments(command)), world.checkout.folder, world.environment, world.folder / log)

    def arguments(self, command: str) -> list[str]:
        """What follows `flexspot`."""
        return [command, "-s", self.stack, *(["--yes"] if command in {"up", "destroy"} else [])]

    def run(self, command: str, state: str) -> str:
        """Runs a command undisturbed with the settings of `state`; returns what went wrong, "" when nothing did."""
        self.use(state)
        done = self.world.flexspot(*self.arguments(command))
        return "" if done.returncode == 0 else f"exit {done.returncode}: {_told(done.stderr)}"

    def previews_a_change(self) -> str:
        """What a preview says when it says anything but `no change`."""
        done = self.world.flexspot("preview", "-s", self.stack)
        return "" if done.returncode == 0 and "no change." in done.stdout else f"preview: {_told(done.stdout[-600:] + done.stderr)}"

    def found(self) -> Found:
        """All that the control plane and the cloud have."""
        return tuple(sorted([*self.world.objects(), *self.world.held()]))

    def differs_from(self, state: str) -> str:
        """What is there and should not be, or is missing; "" when all is as after an undisturbed run."""
        there, wanted = list(self.found()), list(self.reference[state].found)
        missing = _without(wanted, there)
        surplus = _without(there, wanted)
        told = [f"{what} {', '.join(each)}" for what, each in (("missing:", missing), ("too much:", surplus)) if each]
        return "; ".join(told)

    def pending(self) -> str:
        """The operations of which the state does not know how they ended."""
        pending: list[Any] = self.world.state(self.stack).get("pending_operations") or []
        return f"{len(pending)} pending operations" if pending else ""

    def _settings(self, wish: Wish) -> dict[str, Any]:
        own = self.world.settings(self.stack)
        chosen: dict[str, Any] = {"pools": own["pools"], "teams": own["teams"]}
        if wish.small and not self._is_local:
            chosen["pools"] = [pool for pool in own["pools"] if pool["name"] == "l4-spot"]
            chosen["teams"] = [{"name": "research", "shares": {"l4-spot": 2}}]
        if wish.official and not self._is_local:
            # The official provider would want Kueue's chart from a registry; the lab has Kueue.
            chosen["queueing"] = {"existing_kueue": True}
        return chosen

    def _edited(self) -> dict[str, Any]:
        """One more team, and another ceiling for a pool."""
        pools, teams = self._shipped["pools"], self._shipped["teams"]
        first = {**pools[0], "max_nodes": pools[0]["max_nodes"] + 2}
        audio = {"name": "audio", "shares": {pools[0]["name"]: 1}}
        return {**self._shipped, "pools": [first, *pools[1:]], "teams": [*teams, audio]}

    def _use_official(self, tools: Tools) -> None:
        """The person's own Kubernetes plugin in the place of the stand-in's; the clouds' stay stand-ins."""
        name = f"resource-kubernetes-v{PLUGINS['kubernetes']}"
        own = official_plugins() / name
        if not own.is_dir():
            raise FileNotFoundError(f"no official Kubernetes plugin at {own}")
        shutil.rmtree(self.world.home / "plugins" / name)
        (self.world.home / "plugins" / name).symlink_to(own)
        found = shutil.which("pulumi")
        if found and Path(found).resolve() != tools.binary("pulumi").resolve():
            (self.world.programs / "pulumi").unlink()


def official_plugins() -> Path:
    """Where the person who runs this has Pulumi's plugins."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"


def _without(these: list[str], those: list[str]) -> list[str]:
    left = list(those)
    kept: list[str] = []
    for each in these:
        if each in left:
            left.remove(each)
        else:
            kept.append(each)
    return kept


def _told(text: str) -> str:
    return " ".join(text.split())[:400]
