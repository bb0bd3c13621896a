"""The shipped production stack on GKE under the real engine with state; a recording provider plays the cloud.

Registered by the tests' conftest.py.
"""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
import yaml
from recording_provider import Call, RecordingProvider

from infra.engine import StackRun
from infra.program import main
from infra.project import project_here
from lab.engine import PLUGINS
from lab.providers.serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from lab.tools.build import Tools

    Settings = dict[str, Any]

STACK = "prod-gke"


def ignore(_line: str) -> None:
    """Output that no test looks at."""


def shipped() -> Settings:
    return yaml.safe_load(project_here().stack_file(STACK).read_text())["config"]["flexspot:platform"]


def named(urn: str) -> str:
    """A resource as tests call it: the last word of its type, and its name."""
    _, _, kind, name = urn.split("::", 3)
    return f"{kind.rpartition(':')[2]}/{name}"


@dataclass(frozen=True)
class Changes:
    """What one `up` did. `updated` are resources and components whose inputs changed and that are still the same one."""

    counts: Mapping[str, int]
    calls: tuple[Call, ...]
    created: set[str]
    updated: set[str]
    deleted: set[str]
    replaced: set[str]

    def order(self, operation: str, name: str) -> int:
        """The place of a call among all."""
        return [(call.operation, named(call.urn)) for call in self.calls].index((operation, name))


@dataclass(frozen=True)
class Deployment:
    """The stack in a backend of its own. `calls` are shared with the providers."""

    folder: Path
    engine_root: Path | None
    environment: dict[str, str]
    calls: list[Call]

    def run(self, settings: Settings) -> StackRun:
        def program() -> None:
            pulumi.runtime.set_config("flexspot:platform", json.dumps(settings))
            main()

        backend = f"file://{self.folder / 'state'}"
        return StackRun(STACK, self.folder / "project", backend, self.engine_root, self.environment, program)

    def up(self, settings: Settings) -> Changes:
        """As the command line does it: what there is now is looked at first."""
        before = self.resources()
        self.calls.clear()
        counts = self.run(settings).up(ignore, refresh=True)
        after = self.resources()
        calls = tuple(self.calls)
        replaced = {call.urn for call in calls if call.operation == "create" and call.urn in before}
        kept = (before.keys() & after.keys()) - replaced
        updated = {urn for urn in kept if before[urn]["inputs"] != after[urn]["inputs"]}
        # The engine, the provider and the state say the same, so nothing happened that one of them has not seen.
        assert {call.urn for call in calls if call.operation == "update"} == {urn for urn in updated if after[urn]["custom"]}
        assert {call.urn for call in calls if call.operation == "delete"} - replaced <= before.keys() - after.keys()
        assert counts.get("same", 0) == len(kept - updated)
        assert counts.get("update", 0) == len(updated)
        assert counts.get("delete", 0) == len(before.keys() - after.keys())
        assert counts.get("create", 0) == len(after.keys() - before.keys())
        return Changes(
            counts,
            calls,
            created={named(urn) for urn in after.keys() - before.keys()},
            updated={named(urn) for urn in updated},
            deleted={named(urn) for urn in before.keys() - after.keys()},
            replaced={named(urn) for urn in replaced},
        )

    def resources(self) -> dict[str, dict[str, Any]]:
        """The state's resources and components by URN, without the engine's own default provider."""
        if not self.state.exists():
            return {}
        found = json.loads(self.state.read_text())["checkpoint"]["latest"].get("resources", [])
        return {each["urn"]: {"inputs": {}, **each} for each in found if "::default_" not in each["urn"]}

    @property
    def state(self) -> Path:
        return self.folder / "state" / ".pulumi" / "stacks" / "flexspot" / f"{STACK}.json"


@dataclass(frozen=True)
class First:
    """The stack as it is shipped, just deployed; each test changes a copy."""

    deployment: Deployment
    changes: Changes


@pytest.fixture(scope="module")
def first(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[First]:
    calls: list[Call] = []
    folder = tmp_path_factory.mktemp(STACK)
    (folder / "state").mkdir()
    with ExitStack() as served:
        providers = {name: RecordingProvider(name, PLUGINS[name], calls) for name in ("gcp", "kubernetes")}
        environment = {
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DEBUG_PROVIDERS": ",".join(f"{name}:{served.enter_context(serve(each))}" for name, each in providers.items()),
        }
        root = None if shutil.which("pulumi") else tools.links
        deployment = Deployment(folder, root, environment, calls)
        yield First(deployment, deployment.up(shipped()))


@pytest.fixture
def deployed(first: First, tmp_path: Path) -> Deployment:
    """A copy of the deployed stack."""
    original = first.deployment
    shutil.copytree(original.folder / "state", tmp_path / "state")
    return Deployment(tmp_path, original.engine_root, original.environment, original.calls)
