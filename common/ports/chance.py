"""Random bits for names, challenges and keys, by the names of `secrets`.

- `token_bytes`, `token_hex`: they cannot be guessed, and no two of 8 bytes or more are the same.

A simulation gives each process a generator with a seed. Random values of scenarios and runners come
from `random`, with seeds of the task.
"""

from __future__ import annotations

from secrets import token_bytes, token_hex

__all__ = ["token_bytes", "token_hex"]
