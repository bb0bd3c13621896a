"""The words in which the rules of advice speak of a job."""

from enum import StrEnum


class Fact(StrEnum):
    """True or false of a job; the first group is said by its owner, the second is worked out.

    RESUMES: it goes on from a checkpoint, or consists of pieces that can be done again. GANG: it needs several nodes at once. DEADLINE: it
    has one. STEADY: around the clock for a year. DATA_ELSEWHERE: its data is in another region.

    SPOT_PAYS: a run on Spot, overhead included, costs less than on-demand. LATE_ON_SPOT: more runs on Spot would be late than is allowed.
    SLACK_FOR_HYBRID: there is time before the deadline in which Spot can be tried. FLEX_START_OFFERED: DWS gives this machine.
    FITS_FLEX_START: the work is no longer than DWS lets a node run. CAN_WAIT_FOR_FLEX_START, CAN_WAIT_FOR_SPOT: the expected wait breaks
    neither start nor deadline.
    """

    USER_FACING = "user_facing"
    INTERACTIVE = "interactive"
    INTERRUPTIBLE = "interruptible"
    RESUMES = "resumes"
    GANG = "gang"
    DEADLINE = "deadline"
    STEADY = "steady"
    SHARED = "shared"
    GUARANTEED = "guaranteed"
    DATA_ELSEWHERE = "data_elsewhere"
    SPOT_PAYS = "spot_pays"
    LATE_ON_SPOT = "late_on_spot"
    SLACK_FOR_HYBRID = "slack_for_hybrid"
    FLEX_START_OFFERED = "flex_start_offered"
    FITS_FLEX_START = "fits_flex_start"
    CAN_WAIT_FOR_FLEX_START = "can_wait_for_flex_start"
    CAN_WAIT_FOR_SPOT = "can_wait_for_spot"
