"""Marks by which Pulumi's engine sends unknown values, secrets and outputs, for all code that reads or writes its protocol.

Source: sdk/go/common/resource/plugin/rpc.go and sdk/go/common/resource/properties.go of Pulumi 3.259.
"""

from __future__ import annotations

from typing import Final

UNKNOWN_TEXT: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Mark of an unknown string, and of an unknown value of unknown type."""

UNKNOWNS: Final = frozenset(
    {
        UNKNOWN_TEXT,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # a boolean
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # a number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # an array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # an asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # an archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # an object
    }
)
"""Marks of unknown values, one for each type."""

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
"""Key whose value is the kind of a mapping: SECRET, OUTPUT or RESOURCE."""

SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 -- a mark
"""Kind of a secret's envelope. The secret is under `value`."""

OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
"""Kind of an output's envelope. Without `value` it is unknown."""

RESOURCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
"""Kind of a reference to a resource."""
