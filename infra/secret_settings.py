"""The secrets of a stack file, for runs that are to know none."""

from __future__ import annotations

from typing import Any

import yaml

STAND_IN = "(a secret, which an offline preview is not told)"
"""What stands in the place of a secret's value."""

_ENCRYPTION = ("encryptionsalt", "encryptedkey", "secretsprovider")
"""What a stack file says of how its secrets are encrypted (pulumi/pulumi, sdk/go/common/workspace/project.go, ProjectStack)."""


def without_secrets(written: str) -> tuple[str, tuple[str, ...]]:
    """A stack file with STAND_IN for each secret and without what they are encrypted by; and the keys that have some.

    An engine then needs no passphrase and no key of a cloud. A file without any of it comes back as it is.
    """
    content: dict[str, Any] = yaml.safe_load(written) or {}
    config: dict[str, Any] = content.get("config") or {}
    told = {key: _without(value) for key, value in config.items()}
    secret = tuple(key for key, value in config.items() if told[key] != value)
    kept = {key: value for key, value in content.items() if key not in _ENCRYPTION}
    if not secret and kept == content:
        return written, ()
    return yaml.safe_dump(kept | {"config": told}, sort_keys=False), secret


def _without(value: Any) -> Any:
    match value:
        case {"secure": str(), **others} if not others:
            return STAND_IN
        case dict():
            return {key: _without(each) for key, each in value.items()}
        case list():
            return [_without(each) for each in value]
        case _:
            return value
