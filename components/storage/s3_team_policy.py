"""What a team may do in its buckets."""

from __future__ import annotations

from dataclasses import dataclass

from components.iam_document import VERSION, Document, Statement
from components.storage.s3_bucket_policy import bucket_arn


@dataclass(frozen=True)
class TeamFolders:
    """A team's own folder in the checkpoint bucket, and the folders of the dataset bucket that it reads, sorted."""

    partition: str
    team: str
    checkpoint_bucket: str
    dataset_bucket: str | None
    dataset_folders: tuple[str, ...]


def team_policy(folders: TeamFolders, kms_key: str | None) -> Document:
    """What the team may do: anything with the objects of its own folder, and read datasets; with the key only on behalf of these buckets.

    A listing must name the folder as its prefix: one of the whole bucket, or of a prefix that other teams' names share, is refused. The
    actions are those that Mountpoint asks for, and the one that lets other clients resume an upload.
    https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md#iam-permissions
    """
    checkpoints = bucket_arn(folders.partition, folders.checkpoint_bucket)
    statements = [
        _listing("ListCheckpoints", checkpoints, (folders.team,)),
        Statement(
            Sid="ReadAndWriteCheckpoints",
            Effect="Allow",
            Action=["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"],
            Resource=f"{checkpoints}/{folders.team}/*",
        ),
    ]
    if kms_key is not None:
        # Decrypting is part of writing in parts, too: https://repost.aws/knowledge-center/s3-multipart-kms-decrypt
        statements.append(_key_use("UseKeyForCheckpoints", ["kms:Decrypt", "kms:GenerateDataKey"], kms_key, checkpoints))
    if folders.dataset_bucket is not None:
        datasets = bucket_arn(folders.partition, folders.dataset_bucket)
        statements += [
            _listing("ListDatasets", datasets, folders.dataset_folders),
            Statement(
                Sid="ReadDatasets",
                Effect="Allow",
                Action="s3:GetObject",
                Resource=[f"{datasets}/{folder}/*" for folder in folders.dataset_folders],
            ),
        ]
        if kms_key is not None:
            statements.append(_key_use("UseKeyForDatasets", ["kms:Decrypt"], kms_key, datasets))
    return {"Version": VERSION, "Statement": statements}


def _listing(sid: str, bucket: str, folders: tuple[str, ...]) -> Statement:
    return Statement(
        Sid=sid,
        Effect="Allow",
        Action="s3:ListBucket",
        Resource=bucket,
        # The folder itself, red/, is of this form too.
        Condition={"StringLike": {"s3:prefix": [f"{folder}/*" for folder in folders]}},
    )


def _key_use(sid: str, actions: list[str], kms_key: str, bucket: str) -> Statement:
    return Statement(
        Sid=sid,
        Effect="Allow",
        Action=actions,
        Resource=kms_key,
        # What S3 tells KMS: the bucket with a bucket key, the object without. https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-key.html
        Condition={"StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket, f"{bucket}/*"]}},
    )
