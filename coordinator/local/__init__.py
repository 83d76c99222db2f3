"""Local mode: a private Redis and private workers for one run, and nothing of them after it."""

from osbench.coordinator.local.session import LocalMode

__all__ = ["LocalMode"]
