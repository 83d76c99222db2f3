"""Checks of arguments of scenarios with objects of S3, before the load."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from osbench.edges.openstack.common.byte_sizes import SizeDistribution, byte_size, size_problems
from osbench.edges.openstack.common.s3_api import PAGE, PART_BYTES, PARTS

#: Usual size of an upload in parts, and of a part, bytes.
UPLOAD_BYTES, USUAL_PART_BYTES = 32 << 20, 8 << 20
#: Operations of a mix, with their usual shares.
SHARES: Mapping[str, float] = MappingProxyType(
    {"put": 20, "get": 60, "range": 5, "list": 10, "delete": 5}
)


def argument_problems(method: str, args: Mapping[str, Any]) -> list[str]:
    """Return messages on errors in sizes, shares, pages and retries of a scenario's arguments."""
    found = list(size_problems(args, "size"))
    found += size_problems(args, "range_size", least=1)
    found += _part_problems(args) if method == "multipart_upload" else ()
    found += _integer_problems(args, "page_size", 1, PAGE)
    found += _integer_problems(args, "retries", 0, 1000)
    if args.get("shares") is not None:
        found += share_problems(args["shares"])
    return found


def share_weights(shares: Mapping[str, Any]) -> dict[str, float]:
    """Return the shares of a mix as numbers: of 20, "20" or "20 %". Raises ValueError."""
    found = {}
    for name, share in shares.items():
        text = share.strip().removesuffix("%") if isinstance(share, str) else share
        try:
            number = float(text) if not isinstance(text, bool) else -1.0
        except (TypeError, ValueError):
            number = -1.0
        if name not in SHARES or not 0 <= number < 1e15:
            raise ValueError(
                f"shares.{name}: {share!r}: write shares from 0 on of {', '.join(SHARES)}, such as"
                " 20 %"
            )
        found[name] = number
    if not any(found.values()):
        raise ValueError("shares: at least one share must be above 0")
    return found


def share_problems(shares: Any) -> list[str]:
    """Return messages on errors in the shares of a mix; [] if there is none."""
    if not isinstance(shares, Mapping):
        return [f"shares must be an object such as {{put: 20 %, get: 80 %}}, got {shares!r}"]
    try:
        share_weights(shares)
    except ValueError as error:
        return [str(error)]
    return []


def _integer_problems(args: Mapping[str, Any], name: str, least: int, most: int) -> list[str]:
    value = args.get(name, least)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return []
    return [f"{name} must be an integer from {least} to {most}, got {value!r}"]


def _part_problems(args: Mapping[str, Any]) -> list[str]:
    given, size = args.get("part_size", USUAL_PART_BYTES), args.get("size", UPLOAD_BYTES)
    try:
        part = byte_size(given)
    except ValueError as error:
        return [f"part_size: {error}"]
    # a wrong size has a message already
    wrong = any(size_problems({"size": size}, "size"))
    most = 0 if wrong else SizeDistribution(size).most
    if part < PART_BYTES:
        return [f"part_size must be at least {PART_BYTES >> 20} MiB, got {given!r}"]
    if most > part * PARTS:
        return [f"an upload has at most {PARTS:,} parts: raise part_size, got {given!r}"]
    return []
