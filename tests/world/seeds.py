"""For each rule that can be left out, the seed of a schedule, or the scene, that shows it.

`make world WITHOUT=each` finds them anew. A change of the product shifts what a seed plays, so a
test tries some more from there.
"""

from __future__ import annotations

from collections.abc import Callable

from world import test_scenes_joining as joining
from world import test_scenes_rules as rules
from world import test_scenes_workers as workers
from world import test_scenes_zones as zones

#: By the name of the rule.
SHOWN: dict[str, int] = {
    "consent": 5,
    "idempotent-only": 10,
    "ended": 77,
    "resend-batch": 1,
    "recall-unknown": 2,
    "budget": 1,
    "settled-once": 1,
    "whole": 3,
    "ack-gap": 1,
    "unknown-member": 105,
    "will": 5,
    "will-position": 13,
    "holders": 2,
    "restate": 172,
    "lost-after": 12,
    "takeover": 72,
    "told-end": 1,
    "told-while-away": 1,
    "anchored-start": 1,
    "resumed-report": 24,
    "recall-unused": 24,
    "missing-blocks": 400,
    "left-sent": 5,
    "bounds": 3,
    "taken-once": 2,
    "surplus-told": 4,
    "sync": 7,
    "journal-first": 2,
    "ack-disk": 1,
    "deleted-late": 10,
    "fold-order": 1,
    "torn-tail": 18,
    "lock": 1,
    "sequence": 5,
    "recall": 51,
    "void": 2,
    "pop-first": 3,
    "final": 4,
    "leave-returns": 2,
    "lease": 38,
    "lease-length": 38,
    "page-first": 13,
    "resend-block": 1,
    "kept-until-acknowledged": 2,
    "acknowledged-alone": 1,
    "settled-before-final": 2,
    "fresh-clock": 6,
    "told-delay": 509,
    "moved-ends": 9,
    "zone-users": 1,
    "zone-noted": 11,
    "zone-foreign": 94,
}

#: Rules that chance needs too seldom, each with the scene that shows it.
IN_SCENES: dict[str, Callable[[], None]] = {
    "challenge": rules.test_an_offer_that_is_put_back_is_not_followed,
    "changing-heartbeat": rules.test_a_dead_worker_that_redis_keeps_is_not_invited,
    "epoch-written": rules.test_a_run_is_resumed_twice,
    "join-most": joining.test_no_more_join_than_were_asked_for_and_no_more_than_there_are_users,
    "moved-number": joining.test_workers_that_come_in_a_ramp_have_its_users_and_no_others,
    "lease-sent": workers.test_a_worker_that_was_stopped_and_goes_on_starts_nothing_twice,
    "one-grant": rules.test_a_worker_is_not_granted_what_it_may_have_begun,
    "over-followed": rules.test_a_worker_forgets_what_it_had_left_of_a_run_that_is_over,
    "recalled-refused": rules.test_a_batch_that_was_granted_to_others_meanwhile_is_not_taken,
    "session": rules.test_a_batch_that_was_granted_to_others_meanwhile_is_not_taken,
    "silence": rules.test_no_worker_is_lost_because_redis_hangs,
    "told-again": rules.test_a_worker_that_follows_late_goes_on_with_what_it_served,
    "unheard-held": rules.test_users_of_a_worker_that_follows_late_are_not_given_to_others,
    "user-limit-kept": joining.test_a_new_coordinator_gives_nobody_the_users_that_are_about_to_move,
    "version": rules.test_a_control_record_that_is_put_back_changes_no_share,
    "watched": rules.test_no_worker_is_lost_because_redis_hangs,
    "zone-arrivals": zones.test_a_run_takes_workers_by_share_and_one_of_each_zone_at_least,
    "zone-lost": zones.test_users_of_a_lost_zone_are_users_of_the_others,
    "zone-of-number": zones.test_a_run_takes_workers_by_share_and_one_of_each_zone_at_least,
}
