"""Prints each wording of the list that the project's texts contain; ends with 1 if there is one.

python -m words [--lower | PATH ...]

The wordings of `PROSE_RULES` are counted. A file has at most its ceiling of them (`ceilings.txt`),
0 if it is not listed. A ceiling only sinks: `--lower` sets each to the count of its file.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from words.exceptions import EXCEPTIONS
from words.rules import PROSE_RULES, RULES, TUTORIAL_RULES, Rule
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
    "CHANGELOG.md",
)
TUTORIALS = ("first-run.md", "first-flow.md", "first-cloud.md", "first-traces.md", "many-hosts.md")
CEILINGS = ROOT / "tests" / "words" / "ceilings.txt"


def main(arguments: Sequence[str]) -> int:
    """Check the files below some paths, or all that are the product's; lower ceilings."""
    everything = [ROOT / one for one in PATHS]
    if arguments == ["--lower"]:
        lower(everything)
        return 0
    paths = [Path(one) for one in arguments]
    found = list(problems(paths or everything))
    if paths:
        found += prose_problems(paths)
    else:
        found += over_ceiling(everything)
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


def prose_problems(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield the same for each wording of `PROSE_RULES`, and of `TUTORIAL_RULES` in tutorials."""
    for path in _files(paths):
        rules: tuple[Rule, ...] = PROSE_RULES
        if path.name in TUTORIALS:
            rules += TUTORIAL_RULES
        for text in texts_of(path):
            for rule in rules:
                if text.kind & rule.kinds and not _excepted(path, text.words):
                    for hit in rule.pattern.finditer(text.words):
                        around = text.words[max(0, hit.start() - 30) : hit.start() + 50]
                        yield (
                            rule.pattern.pattern,
                            f"{path}:{text.line}: {hit[0][:40]!r}: {rule.better}: ...{around}...",
                        )


def over_ceiling(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield the same for each file with more or fewer wordings of prose than its ceiling."""
    ceilings = _ceilings()
    counts = prose_counts(paths)
    for name in sorted(ceilings.keys() | counts.keys()):
        count, ceiling = counts[name], ceilings.get(name, 0)
        if count > ceiling:
            advice = f"python -m words {name} lists them"
            yield "ceiling", f"{name}: {count} wordings, at most {ceiling}: {advice}"
        elif count < ceiling:
            advice = "lower it by `PYTHONPATH=tests python -m words --lower`"
            yield "ceiling", f"{name}: {count} wordings, the ceiling is {ceiling}: {advice}"


def lower(paths: Sequence[Path]) -> None:
    """Write each file's count of wordings as its ceiling; a ceiling that is lower stays."""
    ceilings = _ceilings()
    counts = prose_counts(paths)
    if ceilings:
        counts = Counter({name: min(counts[name], ceilings.get(name, 0)) for name in counts})
    lines = [f"{name} {counts[name]}\n" for name in sorted(counts) if counts[name]]
    CEILINGS.write_text("".join(lines), "utf-8")


def prose_counts(paths: Sequence[Path]) -> Counter[str]:
    """Return the number of wordings of prose by file, its path relative to the repository."""
    places = (place.split(":")[0] for _, place in prose_problems(paths))
    return Counter(str(Path(place).relative_to(ROOT)) for place in places)


def _ceilings() -> dict[str, int]:
    lines = CEILINGS.read_text("utf-8").splitlines() if CEILINGS.exists() else []
    return {name: int(count) for name, _, count in (line.partition(" ") for line in lines)}


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
