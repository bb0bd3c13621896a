"""The wheel of the runtime, installed as in the guide's Dockerfile: it needs nothing but Python, and starts a program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from installed_fixtures import Installed, uv

pytestmark = pytest.mark.engine

CHECKOUT = Path(__file__).resolve().parents[2]
GUIDE = CHECKOUT / "docs" / "guides" / "training.md"


@pytest.fixture
def image(tmp_path: Path) -> Installed:
    """Return an environment with only the wheel."""
    uv("build", "--quiet", "--wheel", "--out-dir", tmp_path, CHECKOUT / "runtime")
    [wheel] = tmp_path.glob("*.whl")
    uv("venv", "--quiet", "--python", sys.executable, tmp_path / "environment")
    made = Installed(tmp_path / "environment", wheel)
    uv("pip", "install", "--quiet", "--offline", "--python", made.python, wheel)
    return made


def test_it_is_installed_without_the_network_and_starts_every_rank(image: Installed, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import os; os.write(1, (os.environ['RANK'] + '\\n').encode())\n")

    ended = image.run(image.python, "-m", "flexspot_runtime.launch", "--ranks=2", "--", image.python, script, folder=tmp_path)

    assert (ended.returncode, sorted(ended.stdout.split())) == (0, ["0", "1"]), ended.stderr
    assert f"dist/{image.wheel.name.partition('-')[0]}-*.whl" in GUIDE.read_text(encoding="utf-8"), "as the guide's Dockerfile names it"
