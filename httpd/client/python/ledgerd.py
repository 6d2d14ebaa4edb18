"""Asks a ledgerd node over REST, and follows its stream without a gap.

    node = ledgerd.Node("http://127.0.0.1:8080")
    account, slot = node.get("/account/uApo33936ABSobviirURXfWTVi6BTFPDUfH76MmRXkG")
    async for frame in node.follow(wallets=[account["pubkey"]]):
        ...

Integers are exact: those of JSON are Python's. A refusal is a Refused.
"""

import asyncio
import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request

import websockets

PATIENCE = 30  # seconds without an answer after which a node counts as away
LONGEST_WAIT = 2  # seconds that a node lets a question wait
SILENCE = 5  # seconds without a frame after which a connection counts as lost: a heartbeat comes each second
LEAST_PAUSE, MOST_PAUSE = 0.1, 10  # seconds between tries to connect, doubled with each that fails; the least is between questions, too
DEBT_PAUSE = 20  # seconds at least after a node refused a new subscription as too much work
MAX_NAMES = 10_000  # that a node takes on one connection
PART_NAMES = 1250  # that one message says: some 1,390 would fit
SAME_BLOCKS = 1024  # that have one number and are kept at least, more than are undone at once: where no account changes it stays for days
FINAL_CODES = (1003, 1007, 1009)  # of messages that would be refused again


class Refused(Exception):
    """What the node refuses, with its status, and why. The same would be refused again, unless the status is 429 or 503."""

    def __init__(self, status, error, details=""):
        super().__init__(f"{status} {error}: {details}")
        self.status, self.error, self.details = status, error, details


class Node:
    """One node, or one cluster behind a balancer."""

    def __init__(self, address, api_key=None):
        if not address.startswith(("http://", "https://")):
            raise ValueError(f"{address} is no address such as http://127.0.0.1:8080")
        self.base = address.rstrip("/").removesuffix("/api") + "/api"
        self.api_key = api_key

    def get(self, path, **parameters):
        """Returns the answer for a path below /api, and the slot of the ledger that it was computed from. A list is a parameter that is
        given several times, as memcmp may be, True is true, and None is none. A node that cannot be reached, or whose answer breaks
        off, is an OSError.
        """
        return self._get(path, parameters, PATIENCE)

    def _get(self, path, parameters, timeout):
        query = _query(parameters)
        request = urllib.request.Request(f"{self.base}{path}{'?' if query else ''}{query}")
        if self.api_key:
            request.add_header("Authorization", f"Bearer {self.api_key}")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer), int(answer.headers.get("X-Ledger-Slot", 0))
        except urllib.error.HTTPError as refusal:
            raise _refused(refusal) from None
        except (http.client.IncompleteRead, http.client.BadStatusLine) as broken:
            raise ConnectionError(f"the node's answer broke off: {broken}") from broken

    def wait_for(self, signature, commitment="confirmed", within=60):
        """Returns a transaction, and a slot as get does, once the transaction has reached a level; after some seconds it raises the node's 404."""
        late = time.monotonic() + within
        while True:
            asked = time.monotonic()
            left = max(0, min(LONGEST_WAIT, late - asked))
            wanted = {"commitment": commitment, "wait_ms": int(1000 * left)}
            try:
                return self._get(f"/transaction/{urllib.parse.quote(signature, safe='')}", wanted, left + SILENCE)
            except Refused as refusal:
                if refusal.status != 404 or left == 0:
                    raise
            time.sleep(max(0, asked + LEAST_PAUSE - time.monotonic()))  # where something answers that does not wait

    async def follow(self, *, pubkeys=(), programs=(), wallets=(), data_size=None, memcmp=None, after=None, lost=None, **query):
        """Yields the frames of one subscription, through all of its connections, in the order of the ledger and each once.

        The names may be 10,000; without any, everything is followed. Further arguments are those of the query, such as
        commitment="confirmed" or tokens=True. The first frame is of the type "start": all that was told before is void, and what
        follows is complete from there on; it comes again where the node does not know any more what was missed. Behind it
        come the states of the accounts that are named, as updates, and then a frame of the type "ready". With after, the stream
        goes on behind that number instead. The other frames are the node's. It raises Refused for what would be refused again; of any
        other end of a connection lost is told the exception, and in how many seconds the next one is tried.
        """
        parts = _parts({"pubkeys": pubkeys, "programs": programs, "wallets": wallets}, {"data_size": data_size, "memcmp": memcmp})
        query = {"extended": "true", **query, **({"mode": "none"} if parts else {})}
        url = f"{self.base.replace('http', 'ws', 1)}/ws/accounts?{_query(query)}"
        keys = ["ledgerd", f"key.{self.api_key}"] if self.api_key else None
        told = _Told(after)
        pause = LEAST_PAUSE
        while True:
            least, why = 0, None
            try:
                async with websockets.connect(url, subprotocols=keys, max_size=None, open_timeout=SILENCE, close_timeout=1) as socket:
                    async for frame in _Connection(socket, parts, told).frames():
                        pause = LEAST_PAUSE
                        yield frame
            except websockets.ConnectionClosed as end:
                why = end
                code, reason = (end.rcvd.code, end.rcvd.reason) if end.rcvd else (1006, "")
                if code in FINAL_CODES:
                    raise Refused(400, f"closed with {code}", reason) from None
                if code == 1008 and not told.known:
                    least = DEBT_PAUSE
            except (OSError, asyncio.TimeoutError, websockets.WebSocketException) as failure:
                why = failure
                if status := getattr(getattr(failure, "response", failure), "status_code", None):
                    await asyncio.to_thread(self._refused_again, query, status)
            wait = max(least, random.uniform(pause / 2, 3 * pause / 2))
            if lost:
                lost(why, wait)
            await asyncio.sleep(wait)
            pause = min(2 * pause, MOST_PAUSE)

    def _refused_again(self, query, status):
        """Raises why a handshake was refused, if it would be refused again: a plain request for the same is refused alike, and says why."""
        if status in (408, 429) or status >= 500:
            return
        try:
            self.get("/ws/accounts", **query)
        except Refused as refusal:
            if refusal.status == status:
                raise
        except (OSError, ValueError, http.client.HTTPException):
            pass  # the node is away now, or it was no node that answered


def _query(parameters):
    """Writes parameters as an address has them: True as true, a list as several of one name, None not at all."""
    written = {name: str(value).lower() if isinstance(value, bool) else value for name, value in parameters.items() if value is not None}
    return urllib.parse.urlencode(written, doseq=True)


def _refused(refusal):
    try:
        told = json.load(refusal)
        if isinstance(told["error"], dict):  # it is the listener for JSON-RPC
            return Refused(refusal.code, refusal.reason, told["error"]["message"])
        return Refused(refusal.code, told["error"], told["details"])
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        return Refused(refusal.code, refusal.reason)  # it is not a node's answer, or not all of it


def _parts(names, filters):
    """Returns the messages that say the names, none if there are none."""
    every = [(kind, name) for kind, of in names.items() for name in of]
    if not names["programs"] and any(value is not None for value in filters.values()):
        raise ValueError("data_size and memcmp are for programs: name some")
    if len(every) > MAX_NAMES:
        raise ValueError(f"a subscription has at most {MAX_NAMES} names, this one {len(every)}: use several streams")
    parts = []
    for at in range(0, len(every), PART_NAMES):
        part = {}
        for kind, name in every[at:at + PART_NAMES]:
            part.setdefault(kind, []).append(name)
        if "programs" in part:
            part.update({name: value for name, value in filters.items() if value is not None})
        parts.append(part)
    return parts


class _Same:
    """The frames that carried one number, and may come again after a resume: those of the newest SAME_BLOCKS blocks, and of no more than
    twice as many. Of those before only is kept up to which slot they were."""

    def __init__(self):
        self.restoring = False  # since a resume, until a frame has a newer number
        self.newer, self.older = set(), set()
        self.blocks = 0  # ends of blocks in newer
        self.next = 0  # the slot after all of them
        self.middle = self.start = 0  # the slots from which on frames are in newer and in older

    def has(self, frame, text):
        """Returns whether a frame was added. Each below what is kept was, as nothing so old is undone."""
        return text in self.newer or text in self.older or frame.get("slot", frame.get("to_slot", self.start)) < self.start

    def add(self, frame, text):
        """Adds a frame, unless it was told before, and returns whether it did."""
        if self.restoring and self.has(frame, text):
            return False
        self.newer.add(text)
        if frame["type"] == "slot_end":
            self.end(frame["slot"])
        return True

    def end(self, slot):
        self.next = max(self.next, slot + 1)
        self.blocks += 1
        if self.blocks == SAME_BLOCKS:
            self.older, self.newer, self.blocks = self.newer, set(), 0
            self.start, self.middle = self.middle, self.next


class _Told:
    """What a stream was told so far, through all of its connections."""

    def __init__(self, after):
        self.seq = after or 0  # the newest number of any frame
        self.known = after is not None  # a start, with all of its snapshot
        self.same = _Same()

    def reach(self, seq):
        """Notes the number of a frame."""
        if seq > self.seq:
            self.seq = seq
            self.same = _Same()


class _Connection:
    def __init__(self, socket, parts, told):
        self.socket, self.parts, self.told = socket, parts, told
        self.answered = 0  # parts of the names that the node said it tells of
        self.awaits = ""  # an answer before which nothing counts
        self.listing = False  # members of a snapshot come

    async def say(self, **message):
        await self.socket.send(json.dumps(message, separators=(",", ":")))

    async def ask(self):
        """Asks for the first part of the names, or where there are none, where the node stands."""
        self.answered = 0
        if self.parts:
            self.awaits = "subscribed"
            await self.subscribe()
        else:
            self.awaits = "pong"
            await self.say(type="ping", id=3)

    async def subscribe(self):
        """Names the next part, once the one before was answered in full: so frames come in the order of the ledger."""
        await self.say(type="subscribe", id=1, **self.parts[self.answered], snapshot=not self.told.known)

    async def resume(self):
        self.awaits = "resumed"  # what comes before comes again
        await self.say(type="resume", id=2, from_seq=self.told.seq)

    async def frames(self):
        """Yields what the stream has not been told yet."""
        if self.told.known and not self.parts:
            await self.resume()
        else:
            await self.ask()
        while True:
            text = await asyncio.wait_for(self.socket.recv(), SILENCE)
            frame = json.loads(text)
            kind = frame["type"]
            if kind == "error":
                raise Refused(400, frame["error"], frame["details"])
            if kind == "resync_required":
                self.told.known = False
                await self.ask()
            elif kind == "subscribed":
                if start := await self.subscribed(frame):
                    yield start
            elif kind == self.awaits:
                self.awaits = ""
                if kind == "resumed":
                    self.told.same.restoring = True
                else:
                    self.told.known = True
                    yield self.begin(frame, snapshot=False)
            elif self.awaits == "" and not self.again(frame, text):
                if kind != "snapshot_end":
                    yield frame
                elif await self.listed():
                    yield {"type": "ready"}

    async def subscribed(self, frame):
        """Takes in that the node tells of a part of the names, and returns a start where that begins the stream."""
        self.answered += 1
        if self.told.known:
            await (self.resume() if self.answered == len(self.parts) else self.subscribe())
            return None
        self.awaits = ""
        self.listing = True
        start = self.begin(frame, snapshot=True) if self.answered == 1 else None
        self.told.reach(frame["seq"])  # all that came before was told of the parts before, and is in the snapshot of this one
        return start

    async def listed(self):
        """Takes in the end of a part's snapshot, and returns whether it was the last part."""
        self.listing = False
        self.told.known = self.answered == len(self.parts)
        if not self.told.known:
            await self.subscribe()
        return self.told.known

    def begin(self, frame, snapshot):
        self.told.seq = frame["seq"]
        self.told.same = _Same()
        return {"type": "start", "slot": frame["slot"], "seq": frame["seq"], "snapshot": snapshot}

    def again(self, frame, text):
        """Returns whether a frame was told before: after a resume those come again that carry the very number that it went on from."""
        if self.listing or "seq" not in frame:
            return False
        self.told.reach(frame["seq"])
        if frame["seq"] < self.told.seq or frame["type"] == "heartbeat":
            return False
        return not self.told.same.add(frame, text)
