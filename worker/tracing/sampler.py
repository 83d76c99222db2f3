"""Decides which iterations are traced; all workers decide alike, without communication."""

from __future__ import annotations

import hashlib

_MASK = (1 << 64) - 1


def seed_of(run_id: str) -> int:
    """A 64-bit seed from a run id, the same on every host."""
    return int.from_bytes(hashlib.blake2b(run_id.encode(), digest_size=8).digest(), "big")


def mix(seed: int, number: int) -> int:
    """A uniform 64-bit integer of both: step `number` of SplitMix64 (Steele et al. 2014)."""
    z = (seed + number * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def threshold(rate: float) -> int:
    """The bound that `mix` stays below for a share `rate` of all iterations.

    Raises ValueError where `rate` is not within 0 and 1.
    """
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"a sample rate is a share from 0 to 1, got {rate!r}")
    return int(rate * 2**64)
