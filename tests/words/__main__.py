"""Prints each wording of the list that the project's texts contain; ends with 1 if there is one.

python -m words [PATH ...]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from words.exceptions import EXCEPTIONS
from words.rules import RULES
from words.texts import texts_of

ROOT = Path(__file__).resolve().parents[2]
PATHS = (
    "common",
    "worker",
    "coordinator",
    "edges",
    "deploy",
    "samples",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
)


def main(arguments: Sequence[str]) -> int:
    """Check the files below some paths, or all that are the product's."""
    found = list(problems([Path(one) for one in arguments] or [ROOT / one for one in PATHS]))
    for _, place in found:
        print(place)
    if found:
        counts = Counter(rule for rule, _ in found)
        print(f"{len(found)} wordings to mend:")
        print("\n".join(f"{number:6} {pattern}" for pattern, number in counts.most_common()))
    return bool(found)


def problems(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield the pattern of the rule, and place and advice, for each wording to mend."""
    for path in _files(paths):
        for text in texts_of(path):
            for rule in RULES:
                hit = rule.pattern.search(text.words) if text.kind & rule.kinds else None
                if hit and not _excepted(path, text.words):
                    around = text.words[max(0, hit.start() - 30) : hit.end() + 30]
                    yield (
                        rule.pattern.pattern,
                        f"{path}:{text.line}: {hit[0]!r}: {rule.better}: ...{around}...",
                    )


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (one for one in sorted(path.rglob("*")) if one.suffix in {".py", ".md"})
        else:
            yield path


def _excepted(path: Path, words: str) -> bool:
    return any(path.as_posix().endswith(one.path) and one.words in words for one in EXCEPTIONS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
