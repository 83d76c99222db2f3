"""HTTP/1.1 without input and output: requests to bytes, and bytes to responses.

A driver (blocking sockets, an event loop) owns connections, waits and limits; nothing here opens,
reads or waits for anything. One request over one connection, for a driver:

    request = PreparedRequest(outgoing)          # once for equal requests; thread-safe, not changed
    parser = ResponseParser()                      # one a connection, kept with it
    ...
    phases = ExchangePhases(monotonic_ns())      # the driver notes the times in it
    parser.expect(bodiless=request.bodiless, keep_body=False)
    data = request.data(own)                     # bytes to send; `request.rest` after them, if any
    while not parser.take(received):             # until it is True; never with b""
        ...                                      # at the end of the stream: parser.end()
    response = parser.answer(request, phases)    # status, headers, content
    parser.reusable                              # False: close the connection

`take` and `end` raise `BadResponse` and `EarlyEnd`, nothing else; the connection has to be closed
then. `parser.untouched` is True if not a byte of the response came: if the connection was a kept
one, a request that is `repeatable`, or of which no byte went out, is sent again, once, over a new
one. Bytes that come while no response is expected are unsolicited: `take` raises `BadResponse`. If
`parser.reusable` is False after a complete response, use the response and close the connection.

A request with its redirects:

    journey = Journey(request, own)
    while True:
        response = exchange(journey.request, journey.own)
        if response.status not in REDIRECTS or not journey.follow(response):
            break

A driver takes any `WireRequest`: equal requests share one `PreparedRequest`.
`journey.request.origin` is the target: scheme, host, port and TLS settings; it is the
key for kept connections. TLS is without IO, too: `TlsChannel` turns plain bytes into
bytes to send, and received bytes into plain ones.

For every driver, in addition: `ready_requests` (arguments of a scenario into a `PreparedRequest`
and its limits, or None if another client has to make it), `tls_contexts`, `name_lookups` (`kept`,
or a future by `look_up`). `exchange_rules` and `opening` are generators of `exchange_steps` for new
connections, second attempts and redirects; `blocking_driver` and `on_loop.loop_driver` do the
steps. The clients are `socket_client` and `on_loop.loop_client`: they serve an ordinary response
over a kept connection without generators.
"""
