"""Buckets that a cloud does not delete because there is something in them: which, and what to do."""

from __future__ import annotations

import re

_GOOGLE = re.compile(r"Error trying to delete bucket (\S+) containing objects without `force_destroy` set to true")
"""The words of Google's provider 9.29, which looks into the bucket itself; two public logs have them (read on 2026-11-25)."""

_AWS = re.compile(r"deleting S3 Bucket \(([^)]+)\):[^*]*?BucketNotEmpty")
"""Those of AWS's provider before the API's own; likewise in public logs, on several lines (read on 2026-11-25)."""

# It takes folders and older versions, too, and leaves the bucket: cloud.google.com/sdk/gcloud/reference/storage/rm, read on 2026-11-25.
_EMPTIED_ON_GOOGLE = "gcloud storage rm --recursive 'gs://{name}/*'"
_EMPTIED_ON_AWS = 'the button "Empty" of bucket {name} in the S3 console, which takes older versions, too'


def filled_buckets_remedy(text: str) -> str | None:
    """What to do where a run ended at buckets with something in them; None where `text`, the engine's, names none."""
    google, aws = (list(dict.fromkeys(pattern.findall(text))) for pattern in (_GOOGLE, _AWS))
    if not google and not aws:
        return None
    names = ", ".join([*google, *aws])
    ways = [_EMPTIED_ON_GOOGLE.format(name=name) for name in google] + [_EMPTIED_ON_AWS.format(name=name) for name in aws]
    return (
        f"there are files in {names}, and Flexspot deletes none but checkpoints outside of production: copy away what is still needed, "
        f"empty it ({'; '.join(ways)}), and run the same command again: it continues where this one stopped."
    )
