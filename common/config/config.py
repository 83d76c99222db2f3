"""The configuration reader, which rejects every unknown name and value, and the sample file."""

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
from osbench.common.named_files import expanded
from osbench.common.regular_files import read_regular
from osbench.common.secrets.secret_names import MASK, is_secret
from osbench.common.secrets.url_masking import mask_url

#: Largest configuration file, bytes.
FILE_BYTES = 1 << 20

_Sections = dict[str, dict[str, list[str]]]


def search_path() -> list[Path]:
    """Return the default configuration files, in order; the first that exists is read."""
    return [expanded("~/.osbench/osbench.conf"), Path("/etc/osbench/osbench.conf")]


def load(files: Sequence[str] | None = None) -> cfg.ConfigOpts:
    """Read the named files (later ones win), else the first of `search_path`, else defaults.

    Raises ConfigError, which lists every unknown section, unknown option and refused value.
    """
    if files:
        paths = [str(expanded(name)) for name in files]
    else:
        paths = [str(path) for path in search_path() if path.is_file()][:1]
    parsed, problems = _parse(paths)
    for path, sections in parsed.items():
        problems += _unknown(path, sections)
    conf = cfg.ConfigOpts()
    for group, options in OPTIONS.items():
        conf.register_opts(options, group=None if group == "DEFAULT" else group)
    conf(
        args=[],
        prog="osbench",
        default_config_files=list(parsed),
        default_config_dirs=[],
    )
    problems += _refused(conf, parsed)
    if not problems and conf.data_dir.startswith("~"):
        problems.append(
            f"[DEFAULT] data_dir: {conf.data_dir}: this user has no home directory: set HOME, or"
            " name another directory"
        )
    if not problems:
        problems += certificates.complete(conf)
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ConfigError(f"configuration: {count}\n" + "\n".join(f"  {line}" for line in problems))
    return conf


def _parse(paths: Sequence[str]) -> tuple[dict[str, _Sections], list[str]]:
    """Parse each file separately: values merged by oslo.config no longer name their file."""
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
    """Return the group a section stands for; oslo.config takes section names in any case."""
    return "DEFAULT" if section.upper() == "DEFAULT" else section.lower()


def _unknown(path: str, sections: _Sections) -> Iterator[str]:
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
            described = _described(path, section, name, values[name][-1], secret)
            yield f"{described}: unknown option{_suggestion(name, close)}"


def _suggestion(name: str, close: Sequence[str]) -> str:
    for group, options in OPTIONS.items():
        if name in [option.dest for option in options]:
            return f"; it belongs in [{group}]"
    return f"; did you mean {close[0]}?" if close else ""


def _described(path: str, section: str, name: str, value: str | None, secret: bool) -> str:
    """Describe place, option and value for messages, with secrets and passwords masked."""
    if value is None:
        return f"{path}: [{section}] {name}"
    if secret:
        return f"{path}: [{section}] {name} = {MASK}"
    return f"{path}: [{section}] {name} = {mask_url(value)!r}"


def _refused(conf: cfg.ConfigOpts, parsed: dict[str, _Sections]) -> Iterator[str]:
    """Read every option, because oslo.config checks a value only when it is read."""
    for group, options in OPTIONS.items():
        values = conf if group == "DEFAULT" else conf[group]
        for option in options:
            try:
                values[option.dest]
            except (ValueError, cfg.Error) as error:
                place, value = _origin(group, option.dest, parsed)
                described = _described(place, group, option.dest, value, option.secret)
                yield f"{described}: {_reason(error, option, value)}"


def _origin(group: str, name: str, parsed: dict[str, _Sections]) -> tuple[str, str | None]:
    """Return the source of the effective value, and the value as it is written there."""
    variable = f"OS_{group.upper()}__{name.upper()}"
    if variable in os.environ:
        return f"environment variable {variable}", os.environ[variable]
    for path, sections in reversed(parsed.items()):
        for section, values in sections.items():
            if _group_name(section) == group and name in values:
                return path, values[name][-1]
    return "default", None


def _reason(error: Exception, option: cfg.Opt, value: str | None) -> str:
    """Return why the value is refused, not in oslo.config's words, which may show a secret."""
    if isinstance(error, (cfg.NoSuchOptError, cfg.TemplateSubstitutionError)):
        return "names an unknown option after $; a dollar sign is written $$"
    try:
        option.type(value)
    except ValueError as refusal:
        return str(refusal)
    return "is refused" if option.secret else str(error)


def sample() -> str:
    """Return etc/osbench.conf as text: every option with its help, commented out at its default."""
    lines = [
        "# Configuration of osbench. Read from --config-file, else ~/.osbench/osbench.conf, else",
        "# /etc/osbench/osbench.conf. Each option stands here with its default.",
        "# A duration is a number of seconds, or a text such as 30s, 5m or 500ms.",
        "# $option stands for the value of another option; a dollar sign is written $$.",
    ]
    for group, options in OPTIONS.items():
        lines += ["", f"[{group}]"]
        for option in options:
            text = f"{option.help} {limits(option)}".strip()
            lines += ["", *(f"# {line}" for line in textwrap.wrap(text, 96))]
            lines.append(f"#{option.dest} = {written(option.default)}".rstrip())
    return "\n".join(lines) + "\n"


def limits(option: cfg.Opt) -> str:
    """Return a message on the values that an option takes, or "" if its type says it."""
    kind = option.type
    choices = getattr(kind, "choices", None)
    if choices:
        return f"One of {', '.join(choices)}."
    low = getattr(kind, "min", None)
    return f"At least {low:g}." if low and getattr(kind, "max", None) is None else ""


def written(default: Any) -> str:
    """Return a default as a file has it."""
    if default is None:
        return ""
    if isinstance(default, list):
        return ",".join(default)
    return str(default)


if __name__ == "__main__":
    sys.stdout.write(sample())
