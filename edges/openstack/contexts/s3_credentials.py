"""The context `s3_credentials`: keys for S3, from Keystone or from the deployment record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import Cloud, CloudAccess, s3_server
from osbench.plugin.errors import ContextError, DeploymentError

#: Key of `made`: the credentials of users in Keystone, new and old ones, by user and project.
_EC2 = "ec2_credentials"


class S3Credentials(context.Context):
    """Creates EC2 credentials in Keystone for each user that iterations act as.

    A record without Keystone has the keys itself, in the address of its service.
    """

    NAME: ClassVar[str] = "s3_credentials"
    ORDER: ClassVar[int] = 330
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "endpoint": {
                "type": "string",
                "description": "address of S3, for a record of OpenStack; by default of type s3"
                " in the catalogue, else the host of type object-store",
            },
            "service": {
                "type": "string",
                "description": "name of the service in a record without Keystone; s3 by default",
            },
            "region": {
                "type": "string",
                "description": "region of signatures; us-east-1 by default",
            },
        },
        "additionalProperties": False,
        "examples": [{"region": "us-east-1"}],
    }

    def setup(self) -> None:
        """Create the credentials, or read them from the record; store all in `made`.

        Raises DeploymentError if the record lacks them, or the catalogue has no S3.
        """
        deployment = self.surroundings.deployment
        region = self.config.get("region", "us-east-1")
        if deployment is None:
            raise DeploymentError(
                "context s3_credentials needs a deployment: make one with `osbench-coord deployment"
                " create`, or name one with --deployment"
            )
        if deployment.platform != "openstack":
            if "endpoint" in self.config:
                raise DeploymentError(
                    "context s3_credentials: endpoint is for clouds with Keystone; write the"
                    " address into the record, and its name as service"
                )
            service = self.config.get("service", "")
            access = s3_server.access_of_record(deployment, service, region)
        else:
            access = self._cloud_access(region)
        self.made[s3_server.S3] = access.to_dict()

    def cleanup(self) -> None:
        """Delete the credentials that setup created.

        Raises ContextError if they cannot be deleted, or if an interrupted setup may have created
        some that are not known; these are named, not deleted.
        """
        kept: dict[str, dict[str, Any]] = self.made.get(_EC2, {})
        if not kept:
            return
        access = CloudAccess(self.surroundings, self.NAME)
        temporary = [user.temporary for user in access.users]
        users = [
            (cloud, is_new)
            for cloud, is_new in zip(access.each_user, temporary, strict=True)
            if _owner(cloud) in kept
        ]
        found = access.each(
            "S3 credentials removed",
            users,
            lambda one: _remove_credentials(one[0], kept[_owner(one[0])], all_are_ours=one[1]),
        )
        unknown = [access_key for several in found for access_key in several]
        if unknown:
            raise ContextError(
                f"the interrupted setup may have created the EC2 credentials {', '.join(unknown)};"
                " unless another user did, delete them (openstack ec2 credentials delete)"
            )

    def _cloud_access(self, region: str) -> s3_server.S3Access:
        access = CloudAccess(self.surroundings, self.NAME)
        given = self.config.get("endpoint", "")
        try:
            endpoint = s3_server.s3_endpoint(given)[0] if given else ""
        except ValueError as error:
            raise DeploymentError(f"context s3_credentials: endpoint {error}") from None
        endpoint = endpoint or s3_server.address_in_cloud(access.projects[0])
        # a record may have a user twice
        users = list({_owner(cloud): cloud for cloud in access.each_user}.values())
        before = access.each("S3 credentials looked up", users, _credentials_of)
        kept: dict[str, dict[str, Any]] = {
            _owner(cloud): {"before": [one["access"] for one in found], "access_key": ""}
            for cloud, found in zip(users, before, strict=True)
        }
        self.made[_EC2] = kept
        # stored before the first request
        self.keep()
        try:
            made = access.each(
                "S3 credentials made",
                users,
                lambda cloud: _make_credentials(cloud, kept[_owner(cloud)]),
            )
        finally:
            self.keep()
        projects: dict[str, list[tuple[str, str]]] = {}
        for cloud, pair in zip(users, made, strict=True):
            projects.setdefault(cloud.project_id, []).append(pair)
        credential = access.credential
        return s3_server.checked_access(
            s3_server.S3Access(
                endpoint=endpoint,
                region=region,
                verify=credential.verify,
                traced=not given,
                projects=projects,
            )
        )


def _owner(cloud: Cloud) -> str:
    """Return the key of a user in a project: a user may be in several."""
    return f"{cloud.user_id} {cloud.project_id}"


def _path(cloud: Cloud) -> str:
    return f"users/{cloud.user_id}/credentials/OS-EC2"


def _credentials_of(cloud: Cloud) -> list[dict[str, Any]]:
    """Return the EC2 credentials of a user for its project."""
    found = cloud.document("GET", "keystone", _path(cloud))["credentials"]
    return [one for one in found if one["tenant_id"] == cloud.project_id]


def _new_credentials(cloud: Cloud, kept: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the EC2 credentials of a user that were not there before setup."""
    return [one for one in _credentials_of(cloud) if one["access"] not in kept["before"]]


def _make_credentials(cloud: Cloud, kept: dict[str, Any]) -> tuple[str, str]:
    """Create the credentials of a user, and note their access key; return both keys.

    Credentials of an attempt a moment before, whose response was lost, are taken.
    """
    lost = _new_credentials(cloud, kept) if "asked" in kept else []
    kept["asked"] = True
    if lost:
        made = lost[0]
    else:
        wanted = {"tenant_id": cloud.project_id}
        made = cloud.document("POST", "keystone", _path(cloud), json=wanted)["credential"]
    kept["access_key"] = made["access"]
    return made["access"], made["secret"]


def _remove_credentials(cloud: Cloud, kept: Mapping[str, Any], *, all_are_ours: bool) -> list[str]:
    """Delete the credentials of a user; return the access keys of unknown ones since setup.

    Only looks for these if setup does not know the response to its request. `all_are_ours`: the
    user was made for the run, so that they can be deleted.
    """
    known = [kept["access_key"]] if kept["access_key"] else []
    unknown: list[str] = []
    if not known:
        unknown = [
            one["access"] for one in _credentials_of(cloud) if one["access"] not in kept["before"]
        ]
    for access_key in (*known, *(unknown if all_are_ours else ())):
        path = f"{_path(cloud)}/{access_key}"
        cloud.request("DELETE", "keystone", path, expected=(204, 404))
    return [] if all_are_ours else unknown
