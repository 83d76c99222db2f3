"""TLS without input and output: converts plain bytes to bytes to send, and received ones back."""

from __future__ import annotations

import ssl

from osbench.worker.http.wire.wire_errors import CannotSecure, EarlyEnd

#: Ends messages on a port that may not serve TLS.
NO_TLS = "; check that this port serves HTTPS"
#: Plain bytes that are read at once: a record of TLS.
_PIECE = 16 * 1024


class TlsChannel:
    """The client's end of a TLS connection; the driver sends and receives its bytes."""

    __slots__ = ("_inbox", "_outbox", "_tls", "ended")

    def __init__(
        self, context: ssl.SSLContext, host: str, session: ssl.SSLSession | None = None
    ) -> None:
        """Create the channel. `host`: expected certificate name. `session`: to resume."""
        self._inbox = ssl.MemoryBIO()
        self._outbox = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._inbox, self._outbox, server_hostname=host, session=session
        )
        #: The peer has ended the stream by a message of TLS.
        self.ended = False

    def shake(self, received: bytes) -> tuple[bool, bytes]:
        """Continue the handshake with `received`; return whether it is over, and bytes to send.

        `received` is b"" at first. Raises CannotSecure if the handshake fails; `last_words` are to
        be sent then.
        """
        self._inbox.write(received)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False, self._outbox.read()
        except ssl.SSLError as error:
            raise CannotSecure(_reason(error)) from error
        return True, self._outbox.read()

    def wrap(self, plain: bytes) -> bytes:
        """Return `plain` encrypted, as bytes to send. Raises EarlyEnd if the peer has ended TLS."""
        try:
            self._tls.write(plain)
        except ssl.SSLError as error:
            raise EarlyEnd(_reason(error)) from error
        return self._outbox.read()

    def unwrap(self, received: bytes) -> bytes:
        """Return all plain bytes that are complete with `received`, decrypted; b"" if none is.

        Sets `ended` if the peer has ended TLS. Raises EarlyEnd if the bytes are not valid TLS.
        """
        self._inbox.write(received)
        found = []
        try:
            while True:
                plain = self._tls.read(_PIECE)
                if not plain:
                    self.ended = True
                    break
                found.append(plain)
                if not self._inbox.pending and not self._tls.pending():
                    break
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except ssl.SSLError as error:
            raise EarlyEnd(_reason(error)) from error
        return found[0] if len(found) == 1 else b"".join(found)

    def last_words(self) -> bytes:
        """Return and remove bytes that TLS itself has to send, such as alerts; b"" for none."""
        return self._outbox.read() if self._outbox.pending else b""

    @property
    def session(self) -> ssl.SSLSession | None:
        """Return the TLS session, which later connections may resume; complete after a response."""
        return self._tls.session

    @property
    def resumed(self) -> bool:
        """Return whether this connection resumed the session of an earlier one."""
        return bool(self._tls.session_reused)


def _reason(error: ssl.SSLError) -> str:
    verify = getattr(error, "verify_message", "")
    if verify:
        return f"certificate verify failed: {verify}"
    reason = error.reason or "the TLS connection failed"
    hint = NO_TLS if reason == "WRONG_VERSION_NUMBER" else ""
    return f"TLS: {reason.lower().replace('_', ' ')}{hint}"
