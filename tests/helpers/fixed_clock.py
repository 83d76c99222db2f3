"""A clock of a run that shows one instant for ever."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class FixedClock:
    """In place of `RedisClock`; both of its clocks show the same, seconds."""

    at: float = 0.0

    def measure(self) -> None:
        """Measures nothing."""

    def refresh(self, age_s: float = 0.0) -> None:
        """Measures nothing."""

    @property
    def trip_s(self) -> float:
        """It measures nothing."""
        return 0.0

    def now_s(self) -> float:
        """The instant."""
        return self.at

    def at_s(self, monotonic_ns: int) -> float:
        """The same instant."""
        return monotonic_ns / 1e9

    def to_monotonic_ns(self, at_s: float) -> int:
        """The same instant."""
        return round(at_s * 1e9)

    def since_s(self, monotonic_ns: int) -> float:
        """Seconds from an instant to the one that is shown."""
        return self.at - monotonic_ns / 1e9
