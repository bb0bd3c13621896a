"""What a project's own program calls to declare the platform of its stack file; resources of its own go beside it.

from flexspot.program import main

main()
"""

from flexspot.infra.collector import collect_rarely
from flexspot.infra.program import main as declare


def main() -> None:
    """Declares the resources of the stack that is being deployed. Raises SettingsError for settings that cannot work."""
    collect_rarely()
    declare()
