"""Time limits of the protocol between coordinator and workers, in one place.

A worker starts iterations only while its lease lasts. The lease ends sooner than the coordinator
declares a silent worker lost, so that nothing starts after that: `LEASE_S`, longer by the drift of
two clocks and a heartbeat, is less than the least `[coordinator] worker_lost_after_s`.
"""

from __future__ import annotations

#: Between two heartbeats, seconds; news are sent at once, but not sooner than this after the last.
BEAT_S = 0.5
NEWS_S = 0.02
#: Between two beats of an event loop that virtual users share, seconds.
LOOP_BEAT_S = 0.005
#: After this many seconds what was not confirmed is sent again: batches and blocks; blocks of
#: memberships that were left wait longer each time, up to the second value.
RESEND_S = 1.0
RESEND_MOST_S = 5.0
#: How long a worker may start iterations after it sent the last heartbeat that got a reply.
LEASE_S = 2.4
#: Largest difference of clock rates that is reckoned with.
DRIFT = 0.02
#: A worker gets work only within this time of its last sign of life, seconds.
FRESH_S = 1.2
#: Arrivals are granted no later than this before they are due, from the last sign of life on.
HORIZON_S = 1.0
#: A worker of a closed load has at most this much work, seconds, and this many iterations a
#: virtual user at least. Before its speed is known it has more, but for a moment only: what was
#: not started after that is asked back.
STOCK_S = 2.0
STOCK_PER_USER = 2
BLIND_PER_USER = 64
BLIND_S = 0.3
#: What it has in hand lasts longer by this many of its round trips to Redis: so many lie between
#: the end of an iteration and the arrival of a batch that follows from it. A trip counts as this
#: long at most, seconds.
TRIPS = 4
TRIP_MOST_S = 0.5
#: The coordinator asks for heartbeats this often, seconds.
POLL_S = 0.2
#: How long a run waits for what is on its way before it is closed, seconds.
SETTLE_S = 10.0
#: How long the end of a run is sent to workers that do not confirm it, seconds.
FAREWELL_S = 3.0
#: Memberships that a worker has left and still has results of, at most.
LEFT_MOST = 8
#: Seconds that running iterations may take to end after the first Ctrl-C or SIGTERM of a run.
STOP_S = 60.0
