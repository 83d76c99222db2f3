"""Finds the modules that a plug-in file imports from its own folder or package, and hashes them."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from osbench import __version__
from osbench.common.files.named_files import read_named
from osbench.common.text.syntax_trees import syntax_tree

#: Stands for the name of a module that a file imports relative to itself.
RELATIVE = "."


def is_of_osbench(module: str) -> bool:
    """Return whether osbench itself has a module; `module` is its full name."""
    return module.startswith("osbench.")


@dataclass(frozen=True)
class _ReadFile:
    """The digest of a file, and the top-level names that it imports."""

    digest: bytes
    imports: frozenset[str]


class SourceFiles:
    """Plug-in files with their imports and hashes; each file is read once."""

    def __init__(self) -> None:
        self._read: dict[Path, _ReadFile] = {}

    def neighbours(self, file: Path) -> dict[str, Path]:
        """Return modules that a plug-in file imports from its folder, directly or not, by name.

        The path of a package is its `__init__.py`; a relative import means the file's own package.
        A name that Python also finds elsewhere is left out: the import means the other module.
        """
        found: dict[str, Path] = {}
        waiting = [file]
        top = package_of(file)
        while waiting:
            for imported in self.imported_names(waiting.pop()):
                name = top.parent.name if top and imported == RELATIVE else imported
                if name in found:
                    continue
                path = top if top and name == top.parent.name else _beside(file, name)
                if path is not None and _origin(name) in (None, str(path)):
                    found[name] = path
                    waiting += files_of_module(path)
        return found

    def imported_names(self, file: Path) -> frozenset[str]:
        """Return the top-level modules that a file imports; RELATIVE stands for relative imports.

        Empty if the file cannot be read or is not valid Python.
        """
        try:
            return self._file(file).imports
        except OSError:
            return frozenset()

    def source_hash(self, module: str, file: Path) -> str:
        """Return the SHA-256, in hex, that a coordinator and its workers must agree on.

        For a module of osbench, the hash of osbench's version and of `file`, which is the same in
        every kind of installation. For all others, the hash of `file` and of the modules of its
        folder that it imports. Raises OSError if a file cannot be read.
        """
        if is_of_osbench(module):
            return hashlib.sha256(__version__.encode() + self._file(file).digest).hexdigest()
        modules = [
            part for path in self.neighbours(file).values() for part in files_of_module(path)
        ]
        others = sorted(set(modules) - {file})
        if not others:
            return self._file(file).digest.hex()
        digests = (self._file(part).digest for part in (file, *others))
        return hashlib.sha256(b"".join(digests)).hexdigest()

    def _file(self, file: Path) -> _ReadFile:
        known = self._read.get(file)
        if known is None:
            content = read_named(file)
            try:
                imports = frozenset(_imported_names(syntax_tree(content)))
            except (SyntaxError, ValueError):
                imports = frozenset()
            known = _ReadFile(hashlib.sha256(content).digest(), imports)
            self._read[file] = known
        return known


def package_of(file: Path) -> Path | None:
    """Return the `__init__.py` of the outermost package that a file is in; None if in none."""
    top = None
    for folder in file.parents:
        if not (folder / "__init__.py").is_file():
            break
        top = folder / "__init__.py"
    return top


def files_of_module(path: Path) -> list[Path]:
    """Return the files of a module: `path`; of an `__init__.py` all .py files of its package."""
    return sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]


def _beside(file: Path, name: str) -> Path | None:
    for path in (file.parent / name / "__init__.py", file.with_name(f"{name}.py")):
        if path.is_file():
            return path
    return None


def _origin(name: str) -> str | None:
    """Return the file of a module outside plug-ins' folders; "" without a file, None unknown."""
    finders = [one for one in sys.meta_path if not hasattr(one, "of_plugins")]
    specs = (one.find_spec(name, None) for one in finders)
    return next((spec.origin or "" for spec in specs if spec is not None), None)


def _imported_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield RELATIVE
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
