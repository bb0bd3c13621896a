"""The programs that these tests start find the runtime, which this environment has not installed, as the tests themselves do."""

from __future__ import annotations

import os
from pathlib import Path

RUNTIME = Path(__file__).parents[2] / "runtime"

os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(RUNTIME), os.environ.get("PYTHONPATH", "")]))
# What is said of ranks is said of processes, and a machine may have a GPU for one of them. real_gpu.py shows it to what it starts.
os.environ["TRIAL_GPUS"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
