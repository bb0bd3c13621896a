"""What `make setup` compiles, so that no command has to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from infra.precompile import STARTED

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).resolve().parents[2]

COMPILED = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
loaded = [each for each in sys.modules.values() if "site-packages" in (getattr(each, "__file__", None) or "")]
print(json.dumps([of for each in loaded if (of := getattr(each, "__cached__", None))]))
"""


def test_no_library_that_a_program_begins_with_is_compiled_each_time() -> None:
    """What was compiled after `make setup` had ended was not compiled by it: a test that loaded it may have been first."""
    told = subprocess.run([sys.executable, "-c", COMPILED, *STARTED], capture_output=True, text=True, check=True)
    set_up = (CHECKOUT / ".venv" / ".synced").stat().st_mtime
    files = [Path(each) for each in json.loads(told.stdout)]

    assert len(files) > 500
    assert [str(each) for each in files if not each.exists() or each.stat().st_mtime > set_up] == []
