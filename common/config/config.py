"""Reads the configuration, rejects every unknown name and value, and writes the sample file."""

from __future__ import annotations

import difflib
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg, iniparser

from osbench.common.config import certificates
from osbench.common.config.options import OPTIONS
from osbench.common.errors import ConfigError
from osbench.common.files.named_files import expanded
from osbench.common.files.regular_files import read_regular
from osbench.common.secrets.secret_names import MASK, is_secret
from osbench.common.secrets.url_masking import mask_url

#: Largest configuration file, bytes.
FILE_BYTES = 1 << 20

_Sections = dict[str, dict[str, list[str]]]


def search_path() -> list[Path]:
    """Return the paths of default configuration files, in order; `load` reads the first found."""
    return [expanded("~/.osbench/osbench.conf"), Path("/etc/osbench/osbench.conf")]


def load(files: Sequence[str] | None = None) -> cfg.ConfigOpts:
    """Return the checked configuration: defaults, then `files`, then variables OS_GROUP__OPTION.

    Later values win. Without `files`, the first existing file of `search_path` is read, if any.
    Adds TLS certificates to addresses. Raises ConfigError, which lists unknown names, refused
    values and unreadable files.
    """
    if files:
        paths = [str(expanded(name)) for name in files]
    else:
        paths = [str(path) for path in search_path() if path.is_file()][:1]
    parsed, problems = _parse(paths)
    for path, sections in parsed.items():
        problems += _name_problems(path, sections)
    conf = cfg.ConfigOpts()
    for group, options in OPTIONS.items():
        conf.register_opts(options, group=None if group == "DEFAULT" else group)
    conf(args=[], prog="osbench", default_config_files=list(parsed), default_config_dirs=[])
    problems += _value_problems(conf, parsed)
    if not problems and conf.data_dir.startswith("~"):
        problems.append(
            f"[DEFAULT] data_dir: {conf.data_dir}: this user has no home directory: set HOME, or"
            " name another directory"
        )
    if not problems:
        problems += certificates.complete(conf)
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ConfigError(
            f"configuration: {count} to correct\n" + "\n".join(f"  {line}" for line in problems)
        )
    return conf


def _parse(paths: Sequence[str]) -> tuple[dict[str, _Sections], list[str]]:
    """Return sections with options and values by file, and messages on files that cannot be read.

    Such a file has no sections in the result. Parsed one by one, since oslo.config merges files and
    does not report the file of a value.
    """
    parsed: dict[str, _Sections] = {}
    problems: list[str] = []
    for path in paths:
        sections: _Sections = {}
        try:
            # oslo.config reads it twice
            if path != os.devnull:
                read_regular(Path(path), FILE_BYTES)
            cfg.ConfigParser(path, sections).parse()
        except iniparser.ParseError as error:  # its text holds the line: perhaps a password
            problems.append(f"{path}: line {error.lineno}: {error.msg}")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is not text in UTF-8"
            problems.append(f"{path}: {reason}")
        else:
            parsed[path] = sections
    return parsed, problems


def _group_name(section: str) -> str:
    return "DEFAULT" if section.upper() == "DEFAULT" else section.lower()


def _name_problems(path: str, sections: _Sections) -> Iterator[str]:
    for section, values in sections.items():
        options = OPTIONS.get(_group_name(section))
        if options is None:
            named = ", ".join(f"[{group}]" for group in OPTIONS)
            yield f"{path}: [{section}]: unknown section; there are {named}"
            continue
        names = [option.dest for option in options]
        for name in values:
            if name in names:
                continue
            close = difflib.get_close_matches(name, names, n=1)
            like = [option.secret for option in options if option.dest in close]
            secret = any(like) or any(is_secret(word) for word in [name, *close])
            described = _setting_text(path, section, name, values[name][-1], secret)
            yield f"{described}: unknown option{_suggestion(name, close)}"


def _suggestion(name: str, close: Sequence[str]) -> str:
    for group, options in OPTIONS.items():
        if name in [option.dest for option in options]:
            return f"; it belongs in [{group}]"
    return f"; did you mean {close[0]}?" if close else ""


def _setting_text(path: str, section: str, name: str, value: str | None, secret: bool) -> str:
    """Return "PATH: [SECTION] NAME = VALUE" for a message; `secret`: the value is masked.

    Passwords in URLs are masked, too. With `value` None the text ends after the name.
    """
    if value is None:
        return f"{path}: [{section}] {name}"
    if secret:
        return f"{path}: [{section}] {name} = {MASK}"
    return f"{path}: [{section}] {name} = {mask_url(value)!r}"


def _value_problems(conf: cfg.ConfigOpts, parsed: dict[str, _Sections]) -> Iterator[str]:
    """Yield a message for each option of `conf` with an invalid value; reads all options.

    `parsed`: values by file, to name the file. oslo.config checks a value only when it is read.
    """
    for group, options in OPTIONS.items():
        values = conf if group == "DEFAULT" else conf[group]
        for option in options:
            try:
                values[option.dest]
            except (ValueError, cfg.Error) as error:
                place, value = _origin(group, option.dest, parsed)
                described = _setting_text(place, group, option.dest, value, option.secret)
                yield f"{described}: {_reason(error, option, value)}"


def _origin(group: str, name: str, parsed: dict[str, _Sections]) -> tuple[str, str | None]:
    """Return the source of an option's value, and the value as it is written there.

    The source is an environment variable, else the last file that sets it, else "default", whose
    value is None.
    """
    variable = f"OS_{group.upper()}__{name.upper()}"
    if variable in os.environ:
        return f"environment variable {variable}", os.environ[variable]
    for path, sections in reversed(parsed.items()):
        for section, values in sections.items():
            if _group_name(section) == group and name in values:
                return path, values[name][-1]
    return "default", None


def _reason(error: Exception, option: cfg.Opt, value: str | None) -> str:
    """Return why a value is refused; oslo.config's own message may show a secret."""
    if isinstance(error, (cfg.NoSuchOptError, cfg.TemplateSubstitutionError)):
        return "names an unknown option after $; a dollar sign is written $$"
    try:
        option.type(value)
    except ValueError as refusal:
        return str(refusal)
    return "is refused" if option.secret else str(error)


def sample() -> str:
    """Return the text of etc/osbench.conf: all options with help and defaults, commented out."""
    lines = [
        "# Configuration of osbench. Read from --config-file, else ~/.osbench/osbench.conf, else",
        "# /etc/osbench/osbench.conf. Each option is listed with its default.",
        "# A duration is a number of seconds, or a text such as 30s, 5m or 500ms.",
        "# $option is replaced by the value of another option; write a dollar sign as $$.",
    ]
    for group, options in OPTIONS.items():
        lines += ["", f"[{group}]"]
        for option in options:
            text = f"{option.help} {limits(option)}".strip()
            lines += ["", *(f"# {line}" for line in textwrap.wrap(text, 96))]
            lines.append(f"#{option.dest} = {default_text(option.default)}".rstrip())
    return "\n".join(lines) + "\n"


def limits(option: cfg.Opt) -> str:
    """Return the end of an option's help: its choices, or its minimum.

    Returns "" if it has neither, for a minimum of 0, and if it has a maximum, too.
    """
    kind = option.type
    choices = getattr(kind, "choices", None)
    if choices:
        return f"One of {', '.join(choices)}."
    low = getattr(kind, "min", None)
    return f"At least {low:g}." if low and getattr(kind, "max", None) is None else ""


def default_text(default: Any) -> str:
    """Return a default as a configuration file writes it; lists with commas, None as ""."""
    if default is None:
        return ""
    if isinstance(default, list):
        return ",".join(default)
    return str(default)


if __name__ == "__main__":
    sys.stdout.write(sample())
