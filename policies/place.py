"""Where the policy pack is, in a checkout or in an installed package."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
"""The directory pack, for a language host that runs it."""

PROGRAM = FOLDER / "pack"
"""The same pack as a program, which needs none."""

PORT = "FLEXSPOT_POLICY_PACK_PORT"
"""The variable with which `pack` is told that a process serves the pack already, and at which port of loopback."""
