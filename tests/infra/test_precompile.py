"""What `make setup` compiles, so that no command has to."""

from __future__ import annotations

import json
import subprocess
import sys

from infra.precompile import STARTED

NOT_COMPILED = """
import importlib, json, os, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
loaded = [each for each in sys.modules.values() if "site-packages" in (getattr(each, "__file__", None) or "")]
print(json.dumps([each.__file__ for each in loaded if (of := getattr(each, "__cached__", None)) and not os.path.exists(of)]))
"""


def test_no_library_that_a_program_begins_with_is_compiled_each_time() -> None:
    told = subprocess.run([sys.executable, "-c", NOT_COMPILED, *STARTED], capture_output=True, text=True, check=True)

    assert json.loads(told.stdout) == []
