"""Runs Rally's validators of its plug-ins; a message per problem."""

from __future__ import annotations

import copy
import functools
import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from osbench.common.secrets.masking import error_text
from osbench.common.task import Workload
from osbench.edges.rally import plugin_registry

#: Rally's types of validation: `SYNTAX` needs nothing, `PLATFORM` a deployment record, `SEMANTIC`
#: a cloud with users.
SYNTAX = "syntax"
PLATFORM = "platform"
SEMANTIC = "semantic"

#: The validator of configurations by schema. It is skipped, because osbench checks the schema
#: itself: it reports every problem with its place, and no secret.
SCHEMA = "jsonschema@default"

_REPORTED = re.compile(r"\w+ plugin '.*?' doesn't pass (\S+) validation\. Details: (.*)", re.DOTALL)
_HINT = re.compile(r" Use `rally plugin show [^`]*` to display scenario description\.")


def problems(
    kind: str,
    name: str,
    config: Any = None,
    *,
    within: str = SYNTAX,
    workload: Workload | None = None,
    validation_context: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return problems that Rally's validators of the type `within` find in a plug-in's use.

    The plug-in must exist. Validators of scenarios get `workload`, others `config`.
    `validation_context` is Rally's: `platforms`, or users that were created. Unexpected exceptions
    are problems, too. Problems of the JSON schema are left out.
    """
    if within == SYNTAX and within not in dict(_validators(plugin_registry.plugin(kind, name))):
        return []
    try:
        said: list[str] = plugin_registry.base(kind).validate(
            name=name,
            context=validation_context,
            config=as_rally(workload) if workload is not None else None,
            plugin_cfg=copy.deepcopy(config),
            allow_hidden=True,
            vtype=within,
        )
    except Exception as error:  # noqa: BLE001 - a plug-in may ask for validators that cannot be
        return [f"cannot be checked: Rally raises {error_text(error)}"]
    return [sentence for one in said if (sentence := _sentence(one))]


def needing(kind: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield (type, name) of each validator of a plug-in that needs a deployment or its cloud."""
    for within, validator in _validators(plugin_registry.plugin(kind, name)):
        if within != SYNTAX:
            yield within, validator


@functools.cache
def _validators(plugin: Any) -> tuple[tuple[str, str], ...]:
    """Return (type, name) of each validator of a plug-in, each once, except `SCHEMA`.

    The name of a PLATFORM is a platform's. A validator that requires platforms gives these, too.
    """
    validation = importlib.import_module("rally.common.validation")
    found = []
    for validator, _, arguments in plugin._meta_get("validators", default=[]):
        cls: Any = validation.Validator.get(validator)
        if issubclass(cls, validation.RequiredPlatformValidator):
            found.append((PLATFORM, str(arguments.get("platform", validator))))
        elif platforms := cls._meta_get("validators", default=[]):
            found += [(PLATFORM, str(one["platform"])) for _, _, one in platforms]
            found.append((SEMANTIC, validator))
        elif cls.get_fullname() != SCHEMA:
            found.append((SYNTAX, validator))
    return tuple(dict.fromkeys(found))


def as_rally(workload: Workload) -> dict[str, Any]:
    """Return a deep copy in Rally's format; contexts lose @rally, @native, runners any platform."""
    return copy.deepcopy(
        {
            "name": workload.scenario,
            "position": workload.position,
            "description": workload.description,
            "args": dict(workload.args),
            "contexts": {
                context.name.removesuffix("@rally").removesuffix("@native"): context.config
                for context in workload.contexts
            },
            "runner_type": workload.runner.name.partition("@")[0],
            "runner": workload.runner.config,
            "sla": {criterion.name: criterion.config for criterion in workload.sla},
            "hooks": [
                {
                    "description": hook.description,
                    "action": (hook.action.name, hook.action.config),
                    "trigger": (hook.trigger.name, hook.trigger.config),
                }
                for hook in workload.hooks
            ],
        }
    )


def _sentence(text: str) -> str:
    """Return Rally's message as one line, naming the validator; "" for an error of the schema."""
    found = _REPORTED.fullmatch(text)
    if found is None:
        return text.partition("\n")[0]
    validator, details = found.groups()
    if validator == SCHEMA:
        return ""
    name = validator.removesuffix("@default")
    lines = [line.strip() for line in details.strip().splitlines() if line.strip()]
    if lines and lines[0].startswith("Traceback"):
        return f"cannot be checked: Rally's validator {name} raises {lines[-1]}"
    return f"{_HINT.sub('', ' '.join(lines))} (Rally's validator {name})"
