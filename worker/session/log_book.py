"""Output and log records of the process during a run: bounded, masked, with their iteration."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from contextvars import Context, copy_context
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple

from osbench.common.machine.redis_clock import ClockOffset
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.secrets.hiding import hide
from osbench.common.secrets.masking import mask_text, secret_values
from osbench.common.secrets.secret_names import MASK
from osbench.worker.engine.coroutine_engine import CoroutineEngine
from osbench.worker.engine.failures import printable
from osbench.worker.engine.thread_engine import ThreadEngine

#: Characters of an entry that are kept.
ENTRY_CHARS = 8000
#: Characters that a run may take at once, how many more each second, and in all.
BURST_CHARS = 256 << 10
CHARS_PER_S = 8 << 10
TOTAL_CHARS = 4 << 20

#: So many secret values are looked for anywhere in a text: it takes time for each.
ANYWHERE = 100
#: Shorter ones are masked as whole words only: `demo` is a part of many names.
WORD_CHARS = 8
_WORD = re.compile(r"""[^\s"'=,;&<>()\[\]{}]+""")

#: What runs an iteration.
_RUNS = (ThreadEngine.run.__code__, CoroutineEngine.run.__code__)

#: Redis time in seconds since 1970, source, workload, iteration, text: an entry of `Block.log`.
#: The source is stdout, stderr or a level of logging; outside iterations the workload is -1 and
#: the iteration 0.
Entry = list[Any]


class _PrintedBy(NamedTuple):
    """Run, workload, iteration and arguments that a thread is at; the defaults: no iteration."""

    run: str = ""
    workload: int = -1
    iteration: int = 0
    arguments: Mapping[str, Any] = MappingProxyType({})


class _BegunLine(NamedTuple):
    """A printed line without its end, and who printed it."""

    place: _PrintedBy
    #: Has the values to hide.
    context: Context
    text: str


class LogBook:
    """Entries of the current run that wait to be shipped, bounded. Thread-safe.

    Texts are ignored while there is no run.
    """

    def __init__(self) -> None:
        #: Redis time on this host's clock.
        self.clock: ClockOffset | None = None
        self._run = ""
        self._entries: list[Entry] = []
        self._cut = 0
        #: By source and thread.
        self._begun: dict[tuple[str, int], _BegunLine] = {}
        #: Masked wherever they stand, and as whole words.
        self._secrets: tuple[str, ...] = ()
        self._words: frozenset[str] = frozenset()
        self._room = 0.0
        self._left = 0
        self._at_s = 0.0
        self._lock = threading.Lock()

    def begin(self, run: str) -> None:
        """Add entries for `run` from now on; drop earlier entries and secrets, renew the limits."""
        with self._lock:
            self._run, self._entries, self._cut, self._begun = run, [], 0, {}
            self._secrets, self._words = (), frozenset()
            self._room, self._left, self._at_s = BURST_CHARS, TOTAL_CHARS, time.monotonic()

    def end(self) -> None:
        """Drop the waiting entries, and ignore further texts until `begin`."""
        with self._lock:
            self._run, self._entries, self._cut, self._begun = "", [], 0, {}

    def hide(self, secrets: Iterable[str]) -> None:
        """Mask the values `secrets` in later entries, in addition to earlier ones.

        Up to `ANYWHERE` values are masked wherever they stand, short ones and further ones only as
        whole words.
        """
        with self._lock:
            # longer ones first: one may be part of another
            fresh = sorted({*secrets} - {*self._secrets}, key=lambda one: (-len(one), one))
            room = ANYWHERE - len(self._secrets)
            anywhere = [*self._secrets, *fresh[:room]]
            self._secrets = tuple(sorted(anywhere, key=lambda one: (-len(one), one)))
            self._words |= frozenset(fresh[room:])

    def add(self, source: str, text: str) -> None:
        """Add a text that the calling thread printed or logged, with its iteration, masked.

        `source`: stdout, stderr, a log level, or `request`. A long text is cut, a text beyond the
        limits of the run left out; both are counted. Ignored if it is blank, without a run, and in
        a thread that an earlier run has left behind.
        """
        self._add(source, text, _place())

    def write(self, source: str, text: str) -> str:
        """Keep the lines of a printed text as `add`, and return the text with secrets masked.

        An incomplete line, unless it is long, waits for more of the same iteration in this thread;
        output of another iteration in it, or `take` with `final`, ends the wait.
        """
        place = _place()
        shown = self._masked(text, place.arguments)
        key = source, threading.get_ident()
        begun = self._begun.pop(key, None)
        if begun is not None and begun.place[:3] == place[:3]:
            text = begun.text + text
        elif begun is not None:
            begun.context.run(self._add, source, begun.text, begun.place)
        *lines, rest = text.split("\n")
        if len(rest) > ENTRY_CHARS:
            lines.append(rest)
            rest = ""
        if rest and self._run:
            self._begun[key] = _BegunLine(place, copy_context(), rest)
        for line in lines:
            self._add(source, line, place)
        return shown

    def _add(self, source: str, text: str, place: _PrintedBy) -> None:
        if not self._run or not text.strip():
            return
        with self._lock:
            fits = self._take_room(min(len(text), ENTRY_CHARS))
            self._cut += not fits or len(text) > ENTRY_CHARS
            run = self._run
        if not fits:
            return
        if place.run not in ("", run):
            # a thread that an earlier run has left behind
            return
        shown = printable(self._masked(text, place.arguments)[:ENTRY_CHARS])
        entry: Entry = [self._now_s(), source, place.workload, place.iteration, shown]
        with self._lock:
            if self._run == run:
                self._entries.append(entry)

    def masked(self, text: str) -> str:
        """Return `text` with secrets masked.

        They are values of the run and of the calling thread's iteration. Passwords that are
        recognized by their form or name are masked, too.
        """
        return self._masked(text, _place().arguments)

    def take(self, *, final: bool = False) -> tuple[list[Entry], int]:
        """Remove and return the waiting entries, and the count of texts left out or cut.

        With `final`, at the end of a run, lines without an end are entries, too. Before, they wait
        for the rest: a secret is known by the name in front of it.
        """
        for key in list(self._begun) if final else ():
            begun = self._begun.pop(key, None)
            if begun is not None:
                begun.context.run(self._add, key[0], begun.text, begun.place)
        if not self._entries and not self._cut:
            return [], 0
        with self._lock:
            found = self._entries, self._cut
            self._entries, self._cut = [], 0
        return found

    def _masked(self, text: str, arguments: Mapping[str, Any]) -> str:
        with self._lock:
            secrets, words = self._secrets, self._words
        for secret in (*secrets, *secret_values(arguments)):
            if len(secret) >= WORD_CHARS:
                text = text.replace(secret, MASK)
            elif secret in text:
                text = re.sub(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", MASK, text)
        if words:
            text = _WORD.sub(lambda found: MASK if found[0] in words else found[0], text)
        return mask_text(hide(text))

    def _take_room(self, chars: int) -> bool:
        now_s = time.monotonic()
        self._room = min(BURST_CHARS, self._room + (now_s - self._at_s) * CHARS_PER_S)
        self._at_s = now_s
        if chars > min(self._room, self._left):
            return False
        self._room -= chars
        self._left -= chars
        return True

    def _now_s(self) -> float:
        clock = self.clock
        return clock.now_s() if clock is not None else time.time()


def _place() -> _PrintedBy:
    """Return run, workload, iteration and arguments of the iteration that the calling thread runs.

    They are found on the thread's stack. If it runs none: "", -1, 0 and no arguments.
    """
    # found on the stack: to note it for each iteration would slow down iterations that print
    # nothing
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if any(frame.f_code is code for code in _RUNS):
            local = frame.f_locals
            context = local["self"].body.context
            run, workload = context.get("run", ""), context.get("workload", -1)
            return _PrintedBy(run, workload, local["iteration"], local.get("arguments") or {})
        frame = frame.f_back
    return _PrintedBy()
