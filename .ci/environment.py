"""Makes a virtual environment for make and installs into it what is named.

    python .ci/environment.py .venv -e '.[dev,rally]'
    .venv/bin/python .ci/environment.py --bare services -r pins.txt

uv installs, in a tenth of pip's time; it is put into the environment from the index that pip uses.
The pip of the Python that runs this gets it, if there is one: to unpack another takes 5 s.
Where it cannot be had, has failed, or pip has a setting that uv does not know, pip installs. With
`--bare` the environment gets no pip: the uv or the pip of the Python that runs this installs.
Uses only the standard library, and the Python that make was given.
"""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

#: pip's setting -> the variable that tells uv the same.
SAME = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "constraint": "UV_CONSTRAINT",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
#: pip's settings that do not change what is installed.
HARMLESS = {
    "cache-dir",
    "disable-pip-version-check",
    "log",
    "no-cache-dir",
    "no-color",
    "no-input",
    "no-python-version-warning",
    "no-warn-script-location",
    "progress-bar",
    "quiet",
    "require-virtualenv",
    "retries",
    "root-user-action",
    "verbose",
}
#: Lowest pip that another Python may lend, and the requirement for the pip of an environment.
LENDING = 23
PIP = f"pip >= {LENDING}"
#: Sections of pip's configuration that `pip install` reads; later ones win.
SECTIONS = ("global", "install", ":env:")


def settings_of(listed: str) -> dict[str, str]:
    """What `pip install` goes by, of what `pip config list` has printed."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in found:
            found[section][name] = str(ast.literal_eval(value))
    return {name: value for section in SECTIONS for name, value in found[section].items()}


def unknown_to_uv(settings: Mapping[str, str]) -> list[str]:
    """Settings of pip with which uv might install something else."""
    return sorted({*settings} - {*SAME} - HARMLESS)


def environment_for_uv(settings: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The environment in which uv does as pip would; what is `given` for uv itself wins."""
    made: dict[str, str] = {}
    for name in [name for name in SAME if name in settings]:
        words = settings[name].split()
        if name in ("extra-index-url", "find-links"):
            # as pip does; uv would end
            words = [word for word in words if is_there(word)]
        if words:
            made[SAME[name]] = ("," if name == "find-links" else " ").join(words)
    if "UV_HTTP_TIMEOUT" in made:
        made["UV_HTTP_TIMEOUT"] = made["UV_HTTP_TIMEOUT"].partition(".")[0]
    if "SSL_CERT_FILE" not in made:
        # as pip does; uv brings authorities of its own
        made["UV_SYSTEM_CERTS"] = "true"
    if "UV_INDEX" in made:
        # pip takes the best version of all indexes, uv would take the first index that has any
        made["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {**made, **given}


def is_there(place: str) -> bool:
    """False for a path, or the URL of one, that does not exist; elsewhere nobody has looked."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path)).exists()
    return bool(parts.scheme) or Path(place).expanduser().exists()


def say(text: str) -> None:
    print(text, flush=True)


def run(command: Iterable[object], **options: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, check=False, text=True, **options)  # type: ignore[call-overload,no-any-return]


def lends_pip() -> bool:
    """Whether this Python has a pip with the option --python, which came with 22.3."""
    try:
        return int(version("pip").partition(".")[0]) >= LENDING
    except PackageNotFoundError:
        return False


def install_with_uv(python: Path, uv: Path, pip: list[object], what: list[str]) -> str:
    """Have `uv`, which `pip` gets if it is missing, install for `python`; return why not, or ""."""
    settings = settings_of(run([*pip, "config", "list"], capture_output=True).stdout)
    unknown = unknown_to_uv(settings)
    if unknown:
        return f"uv does not know pip's {', '.join(unknown)}"
    if not uv.exists():
        say("getting uv, which installs faster than pip")
        if run([*pip, "install", "--quiet", "uv"], capture_output=True).returncode:
            return "uv cannot be had from the index that pip uses"
    say(f"installing {' '.join(what)} with uv")
    command = [uv, "pip", "install", "--quiet", "--python", python, *what]
    failed = run(command, env=environment_for_uv(settings, os.environ)).returncode
    return "uv has failed" if failed else ""


def main() -> int:
    bare = sys.argv[1:2] == ["--bare"]
    folder, *what = sys.argv[1 + bare :]
    begun = time.monotonic()
    python = Path(folder).absolute() / "bin" / "python"
    lent = not bare and lends_pip()
    installer = Path(sys.executable) if bare or lent else python
    say(f"making the environment {folder} with Python {platform.python_version()}")
    options = ["--without-pip"] if bare or lent else []
    code = run([sys.executable, "-m", "venv", *options, folder]).returncode
    if code:
        return code
    pip: list[object] = [installer, "-m", "pip", "--disable-pip-version-check"]
    uv = (installer if bare else python).with_name("uv")
    if lent:
        pip += ["--python", python]
    why = install_with_uv(python, uv, pip, [*what, PIP] if lent else what)
    if why:
        say(f"{why}: installing {' '.join(what)} with pip, which takes a minute or two")
        if lent:
            # the index may have no pip
            run([python, "-m", "ensurepip", "--default-pip"], capture_output=True)
        code = run([*pip, "--python", python, "install", "--quiet", *what]).returncode
    if code == 0:
        say(f"{folder} is ready after {time.monotonic() - begun:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
