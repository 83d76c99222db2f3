"""Forms with files, as the arguments `files` and `data` of requests describe them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from requests.utils import guess_filename
from urllib3.filepost import encode_multipart_formdata


def attach(options: dict[str, Any]) -> None:
    """Turn `files`, and the form in `data`, into a body. Raises TypeError."""
    files, form = options.pop("files"), options.pop("data", None) or {}
    if not isinstance(files, Mapping) or not isinstance(form, Mapping):
        raise TypeError("files, and the data beside them, are mappings of names")
    parts = [*_fields(form), *((name, _file(name, value)) for name, value in files.items())]
    body, content_type = encode_multipart_formdata(parts)
    headers = dict(options.get("headers") or {})
    headers.setdefault("Content-Type", content_type)
    options.update(data=body, headers=headers)


def _fields(form: Mapping[str, Any]) -> Iterator[tuple[str, str | bytes]]:
    for name, value in form.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is not None:
                yield name, one if isinstance(one, bytes) else str(one)


def _file(field: str, value: Any) -> tuple[Any, ...]:
    """Name, content, and perhaps type of a file, which may be open. Raises TypeError."""
    name, content, *kind = value if isinstance(value, tuple | list) else (None, value)
    if hasattr(content, "read"):
        name = name or guess_filename(content)  # type: ignore[no-untyped-call] # its stub
        content = content.read()
    if not isinstance(content, bytes | str):
        raise TypeError(f"the file {field!r} is bytes, a text or an open file, not {content!r:.80}")
    return (name or field, content, *kind)
