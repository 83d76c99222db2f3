r"""Numbers and texts as reports print them.

- `duration(seconds)`: three digits and a unit, `12.3ms`
- `three_digits(number)`: three significant digits, `1.23`
- `count(number, one, many)`: separators and a noun, `1,200 iterations`
- `instant(seconds)`: an instant in UTC as ISO 8601, `2026-04-01T12:00:00.250Z`
- `plain(text, limit)`: the first line of a foreign text, without control characters
- `escaped(text)`: a text whose control characters are written as \\xNN
- `mask_url(text)`: a text in which passwords and secret parameters of URLs are hidden
"""

from osbench.common.escaping import escaped
from osbench.common.masking import mask_url
from osbench.coordinator.formatting import count, duration, instant, plain, three_digits

__all__ = ["count", "duration", "escaped", "instant", "mask_url", "plain", "three_digits"]
