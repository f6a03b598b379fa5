"""Pairs that were cut, for one warning."""

from dataclasses import dataclass

from .errors import Warnings


@dataclass
class PairCuts:
    """Counts the pairs that were longer than a cross-encoder's limit, for one warning for many."""

    count: int = 0
    total: int = 0
    limit: int | None = None

    @property
    def message(self) -> str:
        return Warnings.RERANKER_TRUNCATED.format(count=self.count, total=self.total, limit=self.limit)
