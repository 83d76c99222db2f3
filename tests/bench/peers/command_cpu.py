"""Runs a command; prints what it wrote and the CPU that it and its children took."""

from __future__ import annotations

import json
import resource
import subprocess
import sys


def main():
    """Print one JSON object."""
    ran = subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE, text=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"said": ran.stdout, "cpu_s": used.ru_utime + used.ru_stime}))


if __name__ == "__main__":
    main()
