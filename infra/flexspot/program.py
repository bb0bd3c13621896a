"""Entry point for a project's program, which declares the platform of its stack file and may declare further resources.

A complete program is `from flexspot.program import main` and `main()`.
"""

from flexspot.infra.declaring.program import main as declare
from flexspot.infra.loading import collect_rarely


def main() -> None:
    """Declare the resources of the stack that is being deployed. Raises SettingsError for settings that cannot work."""
    collect_rarely()
    declare()
