"""A context of the runs of a round: it makes a thing at the server under test, and removes it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from helpers.arena import Arena, Load

#: The plug-in. A thing is a request that names it; it is known on disk before it is made.
_PLUGIN = """
import secrets
import time
import urllib.request

from osbench.plugin import context


class Thing(context.Context):
    NAME = "thing"

    def setup(self):
        self.made["thing"] = secrets.token_hex(8)
        self.keep()
        time.sleep(0.3)
        self._tell("made")
        time.sleep(0.3)

    def cleanup(self):
        time.sleep(0.3)
        if "thing" in self.made:
            self._tell("removed")
        time.sleep(0.3)

    def _tell(self, what):
        url = f"{self.config['url']}:{what}:{self.made['thing']}/0"
        headers = {"X-Osbench-Run": self.surroundings.run}
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30):
            pass
"""


def plugin(arena: Arena) -> Path:
    """The folder with the plug-in."""
    return arena.site.write("plugins/thing.py", _PLUGIN).parent


def asked(arena: Arena, tag: str) -> dict[str, Any]:
    """What the task of a workload says for it to have the context."""
    return {"contexts": {"thing": {"url": arena.log.url(tag).rpartition("/")[0]}}}


def violations(arena: Arena, load: Load) -> list[str]:
    """Things that were made by a run and not removed, or removed again though nobody was killed."""
    made: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for line in arena.log.lines():
        if line.run == load.run and ":" in line.tag and not line.answered:
            _, what, thing = line.tag.split(":")
            (made if what == "made" else removed)[thing] += 1
    found = [f"{load.run}: made and not removed: {one}" for one in made.keys() - removed.keys()]
    if len(load.codes) == 1:
        again = [one for one in removed if (made[one], removed[one]) != (1, 1)]
        found += [f"{load.run}: made {made[one]}, removed {removed[one]} times" for one in again]
    return found
