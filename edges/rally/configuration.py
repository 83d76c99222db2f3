"""Rally's options: read in the coordinator, applied in the workers."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

#: Groups that are not passed to workers; the first contains a password.
_KEPT = frozenset({"database"})

#: Option that switches tracing off, and its group.
_PROFILER = ("enable_profiler", "openstack")

#: Values by group and name; the group of options without one is "DEFAULT".
Options = Mapping[str, Mapping[str, Any]]


def effective() -> dict[str, dict[str, Any]]:
    """Return the options of Rally and its plug-ins that are set, by group and name, unmasked.

    Left out are options that keep their defaults, of logging, and of `database` (a password).
    """
    conf = _conf()
    found: dict[str, dict[str, Any]] = {}
    for group, name in _names(conf):
        place = conf.get_location(name, None if group == "DEFAULT" else group)
        if place is not None and place.location.name != "opt_default":
            value = getattr(conf if group == "DEFAULT" else conf[group], name)
            found.setdefault(group, {})[name] = value
    return found


def profiles() -> bool | None:
    """Return `enable_profiler` of Rally's configuration file; None if the file does not set it."""
    conf = _conf()
    name, group = _PROFILER
    if (group, name) not in set(_names(conf)):
        return None
    place = conf.get_location(name, group)
    return bool(conf[group][name]) if place is not None and place.location.name == "user" else None


def unused_options(file: Path) -> list[str]:
    """Return the options in a configuration file of Rally that osbench does not take.

    As "[GROUP] NAME", in the order of the file; [] if it cannot be read or parsed.
    """
    cfg = importlib.import_module("oslo_config.cfg")
    sections: dict[str, dict[str, Any]] = {}
    try:
        cfg.ConfigParser(str(file), sections).parse()
    except (OSError, cfg.ConfigFileParseError):
        return []
    taken = set(_spellings(_conf()))
    return [
        f"[{group}] {name}"
        for group, options in sections.items()
        for name in options
        if (group.lower(), name.replace("-", "_").lower()) not in taken
    ]


def _spellings(conf: Any) -> Iterator[tuple[str, str]]:
    """Yield group and name of each option that is taken, and its former ones, in small letters."""
    for group, name in _names(conf):
        yield group.lower(), name.lower()
        options = conf._opts if group == "DEFAULT" else conf._groups[group]._opts
        for former in options[name]["opt"].deprecated_opts:
            yield (former.group or group).lower(), (former.name or name).replace("-", "_").lower()


def apply(options: Options) -> None:
    """Set Rally's options in this process to `options`, and all others to their defaults.

    `options` is a result of `effective`; unknown options are ignored. Rally's own tracing is
    disabled: osbench traces iterations itself, and Rally would put the trace store's password into
    each result.
    """
    conf = _conf()
    conf([], project="rally", default_config_files=[], default_config_dirs=[])
    known = set(_names(conf))
    wanted = [(group, name) for group, values in options.items() for name in values]
    for group, name in known.intersection(wanted):
        _override(conf, group, name, options[group][name])
    name, group = _PROFILER
    if (group, name) in known:
        _override(conf, group, name, False)


def _override(conf: Any, group: str, name: str, value: Any) -> None:
    conf.set_override(name, value, None if group == "DEFAULT" else group)


def _names(conf: Any) -> Iterator[tuple[str, str]]:
    groups = importlib.import_module("oslo_config.cfg").ConfigOpts.GroupAttr
    # options of oslo.log and the like, which configure a process's logging, are left out
    listed = dict(importlib.import_module("rally.common.opts").list_opts())["DEFAULT"]
    yield from (("DEFAULT", option.dest) for option in listed if option.dest in conf)
    for name in conf:
        if name not in _KEPT and isinstance(conf[name], groups):
            yield from ((name, option) for option in conf[name])


def _conf() -> Any:
    return importlib.import_module("rally.common.cfg").CONF
