"""What a bucket refuses whoever asks."""

from __future__ import annotations

from components.iam_document import VERSION, Document


def bucket_arn(partition: str, bucket: str) -> str:
    """A bucket's ARN; its name is enough, as no two of a partition are alike."""
    return f"arn:{partition}:s3:::{bucket}"


def tls_only(arn: str) -> Document:
    """The policy of a bucket that answers over TLS 1.2 or later alone.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/example-bucket-policies.html (aws:SecureTransport) and
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/amazon-s3-policy-keys.html (s3:TlsVersion). It allows nothing: permissions are
    those of the roles.
    """
    everything = [arn, f"{arn}/*"]
    return {
        "Version": VERSION,
        "Statement": [
            {
                "Sid": "DenyInsecureTransport",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": everything,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
            {
                "Sid": "DenyOldTls",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": everything,
                "Condition": {"NumericLessThan": {"s3:TlsVersion": "1.2"}},
            },
        ],
    }
