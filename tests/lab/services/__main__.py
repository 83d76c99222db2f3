"""`make lab` and `make lab-stop`: the lab on the command line."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from services import operations
from services.faults import NotStarted, Unavailable
from services.lab import Lab


def main(arguments: list[str] | None = None) -> int:
    """Start, stop or list; 0 where that worked."""
    given = _parser().parse_intermixed_args(arguments)
    if given.command != "start" and not given.dir.exists():
        print(f"there is no lab in {given.dir}", file=sys.stderr)
        return 1
    lab = Lab(given.dir)
    try:
        if given.command == "start":
            _start(lab, given)
        elif given.command == "stop":
            operations.stop(lab, given.services or None, tell=print)
    except (NotStarted, Unavailable) as fault:
        print(fault, file=sys.stderr)
        return 1
    if given.command != "stop":
        _print_table(lab)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="services", description=__doc__)
    parser.add_argument("command", choices=("start", "stop", "status"))
    parser.add_argument("services", nargs="*", metavar="SERVICE", help="only these")
    parser.add_argument("--dir", type=Path, default=Path("build/lab"), help="folder of the lab")
    parser.add_argument(
        "--profiler",
        choices=("on", "off", "buffered"),
        help="OSProfiler in all services; buffered: with the driver of deploy/osprofiler",
    )
    parser.add_argument("--nova", choices=("threading", "eventlet"), help="threads of its daemons")
    parser.add_argument(
        "--mistral", choices=("traced", "stock"), help="stock: its spans go to its log only"
    )
    parser.add_argument("--faults", choices=("on", "off"), help="let tests plant faults")
    return parser


def _start(lab: Lab, given: argparse.Namespace) -> None:
    unknown = [name for name in given.services if name not in operations.ALL]
    if unknown:
        raise Unavailable(
            f"no such service: {', '.join(unknown)}; there are {', '.join(operations.ALL)}"
        )
    options = lab.options
    if given.profiler:
        buffered = given.profiler == "buffered"
        options = replace(options, profiler=given.profiler != "off", buffered=buffered)
    if given.nova:
        options = replace(options, nova_backend=given.nova)
    if given.mistral:
        options = replace(options, mistral_stock=given.mistral == "stock")
    if given.faults:
        options = replace(options, faults=given.faults == "on")
    lab.options = options
    begin = time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - begin:6.1f} s  {line}", flush=True)

    names = given.services
    if not names:
        usual = [name for name, service in operations.ALL.items() if not service.by_name]
        names, cannot = operations.available(usual)
        for name, reason in cannot.items():
            tell(f"{name}: left out: {reason}")
    operations.start(lab, names, tell=tell)


def _print_table(lab: Lab) -> None:
    rows = [("service", "process", "pid", "url")]
    for row in operations.status(lab):
        pid = str(row.pid) if row.pid else "does not run"
        rows.append((row.service, row.process, pid, row.url))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    print()
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)]
        print("  ".join([*cells, row[3]]).rstrip())
    print(f"\ndeployment: {lab.folder / 'deployment.json'}\nvariables:  {lab.folder / 'openrc'}")


if __name__ == "__main__":
    sys.exit(main())
