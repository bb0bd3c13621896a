"""Secrets of a stack file: an offline preview is told none, and needs nothing to decrypt them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from infra.project import STAND_IN, without_secrets

if TYPE_CHECKING:
    from checkout_fixtures import OwnCheckout

CIPHER = "v1:3Ac1Cx3n5xRk7l0J:bDE9t0b5cUYcXw8mOQ0l4yCUnzM="
FILE = f"""
secretsprovider: awskms://alias/platform
encryptedkey: {CIPHER}
encryptionsalt: v1:8C8zBb4Bd+s=:{CIPHER}
config:
  trial:plain: a word
  trial:token: {{secure: "{CIPHER}"}}
  trial:nested: [{{key: {{secure: "{CIPHER}"}}, day: "2026-11-26"}}]
  trial:named: {{secure: "no cipher", beside: 1}}
"""


def test_each_secret_has_a_stand_in_and_nothing_is_left_to_decrypt() -> None:
    written, secret = without_secrets(FILE)

    assert secret == ("trial:token", "trial:nested")
    assert CIPHER not in written
    assert yaml.safe_load(written) == {
        "config": {
            "trial:plain": "a word",
            "trial:token": STAND_IN,
            "trial:nested": [{"key": STAND_IN, "day": "2026-11-26"}],
            "trial:named": {"secure": "no cipher", "beside": 1},
        }
    }


@pytest.mark.parametrize("written", ["", "config:\n  trial:plain: 1  # as it is\n", "config:\n"])
def test_a_file_without_secrets_is_taken_as_it_is(written: str) -> None:
    assert without_secrets(written) == (written, ())


@pytest.mark.engine
def test_a_preview_of_a_stack_with_secrets_asks_for_no_passphrase_and_tells_none(checkout: OwnCheckout) -> None:
    """The engine ended with "incorrect passphrase", or would have asked a key of a cloud."""
    file = Path(checkout.folder) / "stacks" / "Pulumi.dev-eks.yaml"
    written = yaml.safe_load(file.read_text(encoding="utf-8")) | {"encryptionsalt": f"v1:8C8zBb4Bd+s=:{CIPHER}"}
    written["config"]["trial:token"] = {"secure": CIPHER}
    before = yaml.safe_dump(written)
    file.write_text(before, encoding="utf-8")

    shown = checkout.flexspot("preview", "-s", "dev-eks", "--offline")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "the secrets in trial:token are not read" in shown.stdout + shown.stderr
    assert CIPHER not in shown.stdout + shown.stderr
    assert file.read_text(encoding="utf-8") == before
