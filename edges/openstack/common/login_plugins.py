"""Loads auth plug-ins of keystoneauth1, and checks their options before they are used."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from keystoneauth1 import exceptions, loading
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.loading.base import PLUGIN_NAMESPACE

from osbench.common.errors import DeploymentError

#: Plug-ins that log in once: with a token, or with a code that is used up by it.
_ONCE = frozenset(
    {"token", "v2token", "v3token", "v3oidcaccesstoken", "v3totp", "v3oidcauthcode"}
    | {"v3oidcdeviceauthz", "v3websso"}
)
#: Plug-ins that have several of the others.
_MULTIFACTOR = "v3multifactor"


def is_once(auth_type: str, auth: Mapping[str, Any]) -> bool:
    """Return whether an auth plug-in can log in only once, so that its token cannot be renewed.

    True for tokens, one-time codes and browser logins, also as a method of v3multifactor. `auth`:
    its options.
    """
    methods = auth.get("auth_methods") or () if auth_type == _MULTIFACTOR else ()
    return auth_type in _ONCE or any(method in _ONCE for method in methods)


def loader_of(auth_type: str, auth: Mapping[str, Any]) -> Any:
    """Return the keystoneauth1 loader of the auth plug-in `auth_type`; `auth`: its options.

    Raises DeploymentError if unknown, not loadable, or v3multifactor without valid `auth_methods`.
    """
    if not metadata.entry_points(group=PLUGIN_NAMESPACE, name=auth_type):
        known = sorted(loading.get_available_plugin_names())
        close = difflib.get_close_matches(auth_type, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
        raise DeploymentError(f"keystoneauth1 has no auth plug-in {auth_type!r}; {hint}")
    try:
        loader: Any = loading.get_plugin_loader(auth_type)
    except exceptions.NoMatchingPlugin:
        raise DeploymentError(
            f"auth plug-in {auth_type!r} cannot be loaded here; reinstall the package that has it, "
            "or set another auth_type"
        ) from None
    if not loader.available:
        raise DeploymentError(
            f"auth plug-in {auth_type!r} needs packages that are not installed; install its extra "
            "of keystoneauth1, such as keystoneauth1[kerberos], or set another auth_type"
        )
    if auth_type == _MULTIFACTOR:
        # its own options are the options of its methods
        loader._methods = _methods(auth)
    return loader


def _methods(auth: Mapping[str, Any]) -> Sequence[str]:
    methods = auth.get("auth_methods")
    if not isinstance(methods, list) or not methods or not all(isinstance(m, str) for m in methods):
        raise DeploymentError("auth_methods must be a list of auth plug-ins, such as [v3password]")
    for method in methods:
        loader_of(method, {"auth_methods": ["v3password"]})
    return methods


def options_of(loader: Any, auth_type: str, auth: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plug-in's options `auth` by the loader's names, numbers as strings, without None.

    Deprecated names are accepted. `auth_type` is for messages. Raises DeploymentError for an
    unknown option.
    """
    known: dict[str, str] = {}
    for option in loader.get_options():
        for name in (option, *option.deprecated):
            known.setdefault(name.dest, option.dest)
            known.setdefault(name.name.replace("-", "_"), option.dest)
    found: dict[str, Any] = {}
    for key, value in auth.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(sorted(known))}"
            raise DeploymentError(f"auth plug-in {auth_type!r} has no option {key!r}; {hint}")
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        found[known[key]] = str(value) if number else value
    return found


def _needed_options(loader: Any, auth_type: str) -> Iterator[str]:
    """Yield the options that a plug-in needs, even if its loader calls them optional."""
    options = loader.get_options()
    yield from (option.dest for option in options if option.required)
    methods = [*(getattr(loader, "_methods", None) or ()), auth_type]
    for ending, name in (("password", "password"), ("token", "token"), ("totp", "passcode")):
        known = any(option.dest == name and not option.required for option in options)
        if known and any(method.endswith(ending) for method in methods):
            yield name


def load_plugin(auth_type: str, auth: Mapping[str, Any]) -> BaseIdentityPlugin:
    """Return a configured auth plug-in of keystoneauth1 that logs in to Keystone; sends no request.

    `auth`: its options. Raises DeploymentError, without their values, if the plug-in is unknown,
    lacks an option, refuses one, or does not use Keystone.
    """
    loader = loader_of(auth_type, auth)
    options = options_of(loader, auth_type, auth)
    lacking = [
        repr(one) for one in _needed_options(loader, auth_type) if options.get(one) in (None, "")
    ]
    if lacking:
        raise DeploymentError(
            f"auth plug-in {auth_type!r} needs {', '.join(lacking)}; set them in auth"
        )
    try:
        plugin = loader.load_from_options(**options)
    except (exceptions.ClientException, exceptions.OptionError) as error:
        raise DeploymentError(
            f"auth plug-in {auth_type!r}: {error}; correct its options in auth"
        ) from None
    except Exception as error:  # noqa: BLE001 - of plug-ins of others; its text may have a secret
        raise DeploymentError(
            f"auth plug-in {auth_type!r} refuses its options ({type(error).__name__}); correct "
            "them in auth"
        ) from None
    if not isinstance(plugin, BaseIdentityPlugin):
        raise DeploymentError(
            f"auth plug-in {auth_type!r} asks no Keystone for a token: requests would have no "
            "catalogue. Name the services in a record of the platform 'osbench'"
        )
    return plugin
