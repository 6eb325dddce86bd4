"""What all packet sections share."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

Confidence = Annotated[float, Field(ge=0.0, le=1.0)]
"""How sure a decision is: 0 to 1."""


class Section(BaseModel):
    """Frozen data: a node returns a changed copy, it never edits what it was given."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """Return a fresh identifier: 32 hexadecimal digits."""
    return uuid4().hex
