"""Names of S3 buckets."""

from __future__ import annotations

import re

from components.fitted_name import fitted

BUCKET_NAME_CHARACTERS = 63

# A dot is allowed by S3, but the certificate of its endpoints does not cover such a name.
_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")

RESERVED_PREFIXES = ("xn--", "sthree-", "amzn-s3-demo-")
RESERVED_SUFFIXES = ("-s3alias", "--ol-s3", "--x-s3", "--table-s3", "-an")
"""Aliases of access points, directory buckets, table buckets, and the account's own namespace, in which no bucket is made here.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
"""


def bucket_name(account: str, region: str, environment: str, purpose: str) -> str:
    """A bucket name of at most 63 characters, the same each time, that no other account, region or environment of ours derives.

    Bucket names are shared by all accounts of a partition: somebody else can still have taken it, and then the deployment fails. The
    account comes first because no reserved word begins with a digit.
    """
    return fitted(f"{account}-{environment}-{purpose}-{region}", BUCKET_NAME_CHARACTERS)


def check_bucket_name(owner: str, argument: str, bucket: str) -> None:
    """Raises ValueError for a name that S3 refuses, or that has a dot."""
    if not _BUCKET_NAME.fullmatch(bucket):
        raise ValueError(
            f"{owner}: {argument} is {bucket!r} ({len(bucket)} characters); a name has 3 to {BUCKET_NAME_CHARACTERS} of a-z, 0-9 and -, "
            "and begins and ends with a letter or digit: use bucket_name(account, region, environment, purpose)"
        )
    reserved = [word for word in RESERVED_PREFIXES if bucket.startswith(word)] + [
        word for word in RESERVED_SUFFIXES if bucket.endswith(word)
    ]
    if reserved:
        raise ValueError(
            f"{owner}: {argument} is {bucket!r}; S3 keeps names that begin with {', '.join(RESERVED_PREFIXES)} or end with "
            f"{', '.join(RESERVED_SUFFIXES)} for itself: rename it without {reserved[0]}"
        )
