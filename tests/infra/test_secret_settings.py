"""Secrets of a stack file have stand-ins; that a preview asks for none of them is in test_offline_preview.py."""

from __future__ import annotations

import pytest
import yaml

from infra.project import STAND_IN, without_secrets

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
