"""What a project's own program calls to declare the platform of its stack file; resources of its own go beside it.

from flexspot.program import main

main()
"""

from flexspot.infra.declaring.program import main as declare
from flexspot.infra.loading import collect_rarely


def main() -> None:
    """Declares the resources of the stack that is being deployed. Raises SettingsError for settings that cannot work."""
    collect_rarely()
    declare()
