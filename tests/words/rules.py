"""Wordings that made readers guess, each with a better one, and where it is looked for."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass


class Kind(enum.Flag):
    """Kinds of text."""

    DOCSTRING = enum.auto()
    COMMENT = enum.auto()
    MESSAGE = enum.auto()
    DOCUMENT = enum.auto()


INSIDE = Kind.DOCSTRING | Kind.COMMENT
PROSE = Kind.MESSAGE | Kind.DOCUMENT
EVERYWHERE = INSIDE | PROSE


@dataclass(frozen=True)
class Rule:
    """A wording to avoid in some kinds of text."""

    pattern: re.Pattern[str]
    better: str
    kinds: Kind


def _rule(pattern: str, better: str, kinds: Kind) -> Rule:
    return Rule(re.compile(pattern), better, kinds)


_IF = 'None|True|False|empty|0|""|[Rr]aises \\w+'
_CONDITION = "there|it|they|nothing|nobody|no|none|not"
_AMOUNTS = (
    # as in "rows a second"
    "arrivals|blocks|bytes|commands|iterations|messages|requests|rows|samples|spans|times"
)

RULES = (
    _rule(
        r"\A(What|That|Those|Who|Whose|Where|One|How|Why|As|Of|Have|It|Its|Nothing|Nobody)\b",
        "begin with a verb, or with the noun that is meant",
        Kind.DOCSTRING,
    ),
    _rule(r"\bwhat\b", "name the noun", Kind.DOCSTRING),
    _rule(r"\b[Tt]hose (that|who|of|with|in)\b", "name the noun", INSIDE),
    _rule(r"\b(the )?[Oo]nes? (that|who|of)\b", "name the noun", Kind.DOCSTRING),
    _rule(rf"\b({_IF}) where\b|[,;:.] where\b|\b[Ww]here ({_CONDITION})\b", "if", INSIDE),
    _rule(r"\b[Ii]n place of\b", "instead of", EVERYWHERE),
    _rule(r"\bof (its|their|our|his|your) own\b", "own, or separate", EVERYWHERE),
    _rule(
        r"(?<![Tt]here )\b(is|are|was|were) no (?!longer\b|more\b|less\b|later\b|earlier\b)",
        "is not a",
        EVERYWHERE,
    ),
    _rule(r"\b(comes?|came) to (?!an end|rest)", "result, or add up to", INSIDE),
    _rule(r"\b([Tt]ells?|[Tt]elling|[Tt]old)\b", "report, or notify", INSIDE),
    _rule(r"\binstants?\b", "time, or point in time", EVERYWHERE),
    _rule(r"\b(is|are|was|were|be|been) away\b", "is unreachable", EVERYWHERE),
    _rule(r"\bwhole URLs?\b", "absolute URL", EVERYWHERE),
    _rule(r"\bwhole numbers?\b", "integer", EVERYWHERE),
    _rule(r"\b[Aa]nswer(s|ed|ing)?\b", "response, or reply", INSIDE),
    _rule(r"\b[Bb]eside\b", "alongside, next to, or in addition to", INSIDE),
    _rule(r"\b[Hh]eard\b", "alive, or its heartbeat was received", INSIDE),
    _rule(r"\b[Nn]obody\b", "name who does not", INSIDE),
    _rule(r"\bsentences?\b", "message", Kind.DOCSTRING),
    _rule(rf"\b({_AMOUNTS}) an? (second|minute|hour|iteration|block)\b", "per", EVERYWHERE),
    _rule(r"\bof \w+'s(?=[.,;:)]|$)", "of, or by, without the genitive", INSIDE),
)

_LATE = "goes on|go on|went on|stands|comes to|[Bb]eside|[Mm]eanwhile|anew|by turns|[Ww]hatever"
_SAID = "is|are|was|were|has|have|had|can|may|must|needs?|does|do|will"

#: Wordings of documents and messages. `ceilings.txt` says how many of them each file still has.
PROSE_RULES = (
    _rule(r"\b[Ww]hat\b(?![^.?!]*\?)", "name the noun: the cost of X", PROSE),
    _rule(r"\b([Tt]hat|[Tt]hose) of\b|\b[Tt]hose (that|who|with|in)\b", "repeat the noun", PROSE),
    _rule(r"\b([Tt]he )?[Oo]nes? (that|who)\b", "name the noun", PROSE),
    _rule(r"\b([Tt]ells?|[Tt]elling|[Tt]old)\b", "report, show, print", PROSE),
    _rule(
        r"(\bpage|\bREADME|\bguide|\breference|\]CODE) (has|have)\b",
        "describes, explains, lists",
        PROSE,
    ),
    _rule(
        rf": (?:(?:[Tt]he|an?|it|they|this|\w+)(?: \w+)?) (?:{_SAID})\b",
        "a full stop",
        Kind.DOCUMENT,
    ),
    _rule(r"(?:\A|[.!?] )(Of|Below|Behind|Hatched|In brackets|Above it)\b", "subject first", PROSE),
    _rule(rf"[,;:.] where\b|\b[Ww]here ({_CONDITION})\b", "if, or when", PROSE),
    _rule(r"(?<!once )(?<!twice )\b\w+[s\d] a (second|minute|hour)\b", "per", PROSE),
    _rule(rf"\b({_LATE})\b", "continues, is, results in, next to, again, alternately", PROSE),
    _rule(r"\b[Nn](othing|obody)\b", "say what does not happen", PROSE),
    _rule(r"\b[Aa]nswer(s|ed|ing)?\b", "response, or reply", PROSE),
    _rule(r", too\b", "also", PROSE),
    _rule(r"(?:(?!- )[^\s.!?|]+ ){36,}", "a shorter sentence", Kind.DOCUMENT),
)
#: Tutorials are for a reader who follows word by word.
TUTORIAL_RULES = (_rule(r";", "a full stop", Kind.DOCUMENT),)
