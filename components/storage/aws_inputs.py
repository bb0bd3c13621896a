"""What AWS accepts as tags and as the key that encrypts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from capacity.values.names import AWS_KEY, FORMS

if TYPE_CHECKING:
    import pulumi

_TAGS = 50
_TAG_KEY = re.compile(r"[\w .:/=+@-]{1,128}")
_TAG_VALUE = re.compile(r"[\w .:/=+@-]{0,256}")
_KEY = re.compile(AWS_KEY)


def check_aws_tags(owner: str, tags: dict[str, str]) -> None:
    """Raises ValueError for a tag that AWS refuses.

    The limits are those that all services share: https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
    """
    if len(tags) > _TAGS:
        raise ValueError(f"{owner}: tags has {len(tags)} keys; a resource has at most {_TAGS}: leave some out")
    for key, value in tags.items():
        if not _TAG_KEY.fullmatch(key) or key.lower().startswith("aws:"):
            raise ValueError(
                f"{owner}: tags has the key {key!r}; a key has 1 to 128 letters, digits, spaces and _.:/=+-@, and not aws: at its "
                "beginning: respell it"
            )
        if not _TAG_VALUE.fullmatch(value):
            raise ValueError(
                f"{owner}: tags has {key}={value!r}; a value has at most 256 letters, digits, spaces and _.:/=+-@: shorten or respell it"
            )


def check_kms_key(owner: str, key: pulumi.Input[str] | None) -> None:
    """Raises ValueError for a plain key that is not given by its ARN.

    A policy cannot name an alias: it is the key behind it that permissions are for. And S3 looks an alias up in the account of whoever
    writes. https://docs.aws.amazon.com/kms/latest/developerguide/cmks-in-iam-policies.html
    """
    if isinstance(key, str) and not _KEY.fullmatch(key):
        raise ValueError(f"{owner}: kms_key is {key!r}; allowed is {FORMS[AWS_KEY]}: `aws kms describe-key --key-id ALIAS` shows it")
