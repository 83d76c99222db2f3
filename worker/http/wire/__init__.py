"""HTTP/1.1 without input and output: what a client sends, and what it makes of the bytes it gets.

A driver (blocking sockets, an event loop) owns connections, waits and limits; nothing here opens,
reads or waits for anything. One request over one connection, for a driver:

    request = PreparedRequest(outgoing)          # once for equal requests; thread-safe, not changed
    parser = AnswerParser()                      # one a connection, kept with it
    ...
    phases = ExchangePhases(monotonic_ns())      # the driver notes the instants in it
    parser.expect(bodiless=request.bodiless, keep_body=False)
    data = request.data(own)                     # bytes to send; `request.rest` after them, if any
    while not parser.take(received):             # until it is True; never with b""
        ...                                      # at the end of the stream: parser.end()
    answer = parser.answer(request, phases)      # status, headers, content
    parser.reusable                              # False: close the connection

`take` and `end` raise `BadAnswer` and `EarlyEnd`, nothing else; the connection has to be closed
then. `parser.untouched` tells that not a byte of the answer came: if the connection was a kept one,
a request that is `repeatable`, or of which no byte went out, is sent again, once, over a new one.
Bytes that come while no answer is expected are unsolicited: `take` raises
`BadAnswer`. Where `parser.reusable` is False after an answer that is whole, use the answer and
close the connection.

A request with what its redirects lead to:

    journey = Journey(request, own)
    while True:
        answer = exchange(journey.request, journey.own)
        if answer.status not in REDIRECTS or not journey.follow(answer):
            break

A driver takes any `WireRequest`: `PreparedRequest` is the one that equal requests share.
`journey.request.origin` names where each goes: scheme, host, port and what TLS is to check; it is
the key for connections that are kept. TLS is without IO, too: `TlsChannel` turns plain bytes into
bytes to send, and received bytes into plain ones.

Beside it, and for every driver: `ready_requests` (arguments of a scenario into a `PreparedRequest`
and its limits, or None where another client has to make it), `tls_contexts`, `name_lookups`
(`kept`, or a future by `look_up`). `exchange_rules` and `opening` are generators of
`exchange_steps` for new connections, second attempts and redirects; `blocking_driver` and
`on_loop.loop_driver` do the steps. The clients are `socket_client` and `on_loop.loop_client`: they
serve an ordinary answer over a kept connection without generators.
"""
