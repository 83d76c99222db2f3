"""A session of requests that sends secret headers only to the origin they are meant for."""

from __future__ import annotations

from typing import Any

import requests

from osbench.common.network.origins import origin_changes, secret_headers


class HomeSession(requests.Session):
    """A session of requests that drops secret headers if a redirect leads to another origin.

    requests does so with Authorization only, and keystoneauth1, which follows redirects by itself
    with a further request, not at all.
    """

    #: URL to which the last response leads, and the URL of the first request of its chain.
    _leads: tuple[str, str] | None = None

    def request(  # type: ignore[override] # all else as in requests
        self, method: str, url: str, *more: Any, **options: Any
    ) -> requests.Response:
        """Send a request; without secret headers if it follows a redirect to another origin.

        It follows a redirect if its URL is the Location of this session's last response.
        """
        leads, self._leads = self._leads, None
        home = leads[1] if leads is not None and leads[0] == url else None
        given = options.get("headers")
        if home is not None and given and not self.takes_secrets(home, url):
            left = set(secret_headers(given))
            options["headers"] = {name: v for name, v in given.items() if name not in left}
        response = self._request(method, url, *more, **options)
        if 300 <= response.status_code < 400 and "location" in response.headers:
            self._leads = response.headers["location"], home or url
        return response

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        """Remove secret headers from a request if it follows a redirect to another origin.

        requests calls it for each redirect that it follows.
        """
        super().rebuild_auth(prepared_request, response)  # type: ignore[no-untyped-call] # its stub
        if not self.takes_secrets(str(response.url), str(prepared_request.url)):
            for name in secret_headers(list(prepared_request.headers)):
                del prepared_request.headers[name]

    def takes_secrets(self, home: str, url: str) -> bool:
        """Return whether secret headers meant for `home` may be sent to `url`.

        They may to the same origin, and to its upgrade from http to https.
        """
        return not origin_changes(home, url)

    def _request(self, method: str, url: str, *more: Any, **options: Any) -> requests.Response:
        return super().request(method, url, *more, **options)
