r"""Numbers and texts as reports print them.

- `duration(seconds)`: three digits and a unit, `12.3ms`
- `three_digits(number)`: three significant digits, `1.23`
- `count(number, one, many)`: separators and a noun, `1,200 iterations`
- `timestamp(seconds)`: a time in UTC as ISO 8601, `2026-04-01T12:00:00.250Z`
- `plain(text, limit)`: the first line of a foreign text, without control characters
- `escaped(text)`: a text whose control characters are written as \\xNN
- `mask_text(text)`: a text of others without secrets: in URLs, behind names, known by their form
- `mask_url(text)`: a text in which secrets in URLs, and those known by their form, are hidden
"""

from osbench.common.secrets.masking import mask_text
from osbench.common.secrets.url_masking import mask_url
from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import count, duration, plain, three_digits, timestamp

__all__ = [
    "count",
    "duration",
    "escaped",
    "mask_text",
    "mask_url",
    "plain",
    "three_digits",
    "timestamp",
]
