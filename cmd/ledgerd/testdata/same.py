"""Tells a stream of the Python client 17,500 blocks of one number, of which a thousand are undone seven times, and what came so far
again at many points, as after a resume: it takes each frame once, and keeps a bounded number of them. Argument: the module of the client."""

import os
import sys

sys.path.insert(0, os.path.dirname(sys.argv[1]))
import ledgerd


def frames():
    slot = 0
    for _ in range(7):
        ancestor = slot + 998
        yield from ({"type": "slot_end", "slot": slot + 2 * n} for n in range(1500))
        yield {"type": "rollback", "to_slot": ancestor}
        yield {"type": "account_update", "slot": ancestor}
        yield from ({"type": "slot_end", "slot": ancestor + 1 + 2 * n} for n in range(1000))
        slot += 3001


every = [({**frame, "seq": 7}, str(frame)) for frame in frames()]
for end in range(500, len(every), 500):
    told = ledgerd._Told(7)
    connection = ledgerd._Connection(None, [], told)
    told.same.restoring = True
    for again in (False, True):
        for frame, text in every[:end]:
            assert connection.again(frame, text) == again, frame
            assert len(told.same.newer) + len(told.same.older) <= 2100, frame
