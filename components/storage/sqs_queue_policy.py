"""Who may do what with a work queue."""

from __future__ import annotations

from components.iam_document import VERSION, Document, Statement


def queue_arn(partition: str, region: str, account: str, queue: str) -> str:
    """A queue's ARN, which is known before the queue is there."""
    return f"arn:{partition}:sqs:{region}:{account}:{queue}"


def tls_only(arn: str) -> Document:
    """The policy of a queue that answers over TLS alone.

    It allows nothing: permissions are those of the roles. SQS has no condition key for the version of TLS, and takes 1.2 or later alone.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-security-best-practices.html
    """
    return {
        "Version": VERSION,
        "Statement": [
            {
                "Sid": "DenyHTTP",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sqs:*",
                "Resource": arn,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ],
    }


def worker_policy(arn: str, kms_key: str | None) -> Document:
    """What a worker may do: take a task, keep it longer, give it back or finish it. Not send one, not empty or change the queue.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html; with a key of one's own, a consumer needs
    kms:Decrypt, here through SQS alone: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
    """
    statements = [
        Statement(
            Sid="Work",
            Effect="Allow",
            Action=[
                "sqs:ReceiveMessage",
                "sqs:ChangeMessageVisibility",
                "sqs:DeleteMessage",
                "sqs:GetQueueAttributes",
                "sqs:GetQueueUrl",
            ],
            Resource=arn,
        )
    ]
    if kms_key is not None:
        through_sqs = f"sqs.{arn.split(':')[3]}.amazonaws.com"
        statements.append(
            Statement(
                Sid="ReadMessages",
                Effect="Allow",
                Action="kms:Decrypt",
                Resource=kms_key,
                # The buckets may have the same key. In China the services' names end with .cn.
                Condition={"StringEquals": {"kms:ViaService": [through_sqs, f"{through_sqs}.cn"]}},
            )
        )
    return {"Version": VERSION, "Statement": statements}
