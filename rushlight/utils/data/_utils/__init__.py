"""What happens to samples on their way into a batch."""

from __future__ import annotations

from . import collate, fetch, worker
