"""The built wheel in separate environments, as for users without a checkout; registered by the tests' conftest.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]


def outside_of_the_checkout() -> dict[str, str]:
    """Return the environment variables of the tests without those that let Python find the checkout."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}} | {"COLUMNS": "200"}


def uv(*arguments: str | Path, folder: Path = CHECKOUT) -> str:
    """Return the output of uv, which `make setup` installs if it is missing."""
    program = shutil.which("uv") or str(CHECKOUT / ".tools" / "uv" / "bin" / "uv")
    done = subprocess.run([program, *arguments], cwd=folder, env=outside_of_the_checkout(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Installed:
    """An environment with only the wheel and its dependencies."""

    environment: Path
    wheel: Path

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"

    @property
    def package(self) -> Path:
        """The folder of the installed package."""
        return self.environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages" / "flexspot"

    def run(
        self, program: str | Path, *arguments: str | Path, folder: Path, timeout: float = 300, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Return the result of a program in `folder`, with this environment's own programs first on PATH."""
        values = outside_of_the_checkout() | environment
        values["PATH"] = os.pathsep.join([str(self.environment / "bin"), values["PATH"]])
        return subprocess.run(
            [program, *arguments],
            cwd=folder,
            env=values,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )

    def flexspot(self, *arguments: str | Path, folder: Path, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
        """Return the result of the installed command in `folder`."""
        return self.run(self.environment / "bin" / "flexspot", *arguments, folder=folder, timeout=timeout, **environment)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, next to `locked.txt` with the versions of uv.lock."""
    place = tmp_path_factory.mktemp("wheel")
    uv("build", "--quiet", "--wheel", "--out-dir", place, CHECKOUT)
    locked = ("export", "--quiet", "--frozen", "--no-dev", "--all-extras", "--no-emit-workspace", "--no-hashes")
    uv(*locked, "--output-file", place / "locked.txt")
    [built] = place.glob("*.whl")
    return built


def _environment(wheel: Path, place: Path, extras: str) -> Installed:
    # Includes pip, as `python3 -m venv` does, because a language host lists a program's packages with it.
    uv("venv", "--quiet", "--seed", "--python", sys.executable, place / "environment")
    made = Installed(place / "environment", wheel)
    locked = wheel.with_name("locked.txt")
    uv("pip", "install", "--quiet", "--python", made.python, "--constraints", locked, f"flexspot{extras} @ {wheel.as_uri()}")
    return made


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return the environment of `pip install 'flexspot[eks,gke]'`."""
    return _environment(wheel, tmp_path_factory.mktemp("installed"), "[eks,gke]")


@pytest.fixture(scope="session")
def eks_alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return the environment of `pip install 'flexspot[eks]'`."""
    return _environment(wheel, tmp_path_factory.mktemp("eks"), "[eks]")


@pytest.fixture(scope="session")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return the environment of `pip install flexspot`."""
    return _environment(wheel, tmp_path_factory.mktemp("base"), "")
