"""The file in which a preview writes a plan down, as far as costs are worked out from it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from capacity.explained_error import ExitCode, ExplainedError
from capacity.money.costed_plan import CostedPlan
from capacity.platform import VOCABULARIES
from capacity.price_book import PriceBook, PriceFile, prices_of

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1
"""The form of the file. It changes when a program that reads the old form would misread the new one."""

_REMEDY = "give the file that `flexspot preview --offline --stack NAME --plan-out FILE` writes."
_TOLD = 8


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Cost(_Part):
    """What of the cost is needed to work it out anew: the prices of the stack's own file."""

    own_prices: PriceFile | None = None


class PlanFile(_Part):
    """A plan, the name of its stack, and the prices that it was made with besides the shipped ones."""

    version: Literal[1]
    stack: str
    plan: CostedPlan
    cost: _Cost | None

    def prices(self) -> PriceBook:
        """The shipped prices of its cloud, with those of the stack's own file before them."""
        book = prices_of(VOCABULARIES[self.plan.cloud].catalog)
        own = self.cost.own_prices if self.cost is not None else None
        return book if own is None else book.with_rows_of(own, "prices_file")


def read_plan_file(path: Path) -> PlanFile:
    """The plan of a file. Raises ExplainedError for what cannot be read, is not JSON, has another version, or is no plan."""
    try:
        written: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise _refused(f"{path} is not JSON, or was cut off.", str(error)) from error
    fields = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
    if "plan" not in fields or "stack" not in fields:
        raise _refused(f"{path} is not a plan: it has no stack and plan.")
    if fields.get("version") != VERSION:
        raise _refused(f"{path} is a plan of version {fields.get('version')!r}, and this program reads version {VERSION}.")
    try:
        return PlanFile.model_validate(fields)
    except ValidationError as error:
        told = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise _refused(f"{path} is not a plan: {len(told)} of its fields are not what they must be.", *told[:_TOLD]) from error


def _refused(problem: str, *evidence: str) -> ExplainedError:
    return ExplainedError(problem, _REMEDY, exit_code=ExitCode.BAD_USAGE, evidence=evidence)
