"""Has a node refuse what the Python client asks for, and prints a line for each. Arguments: the module of the client, the node's address."""

import asyncio
import http.server
import os
import sys
import threading
import time

library, host = sys.argv[1:]
address = f"http://{host}"
sys.path.insert(0, os.path.dirname(library))
import ledgerd


async def follow(node, **wanted):
    async for frame in node.follow(**wanted):
        print("told", frame["type"])
        return


def patiently(ask, *arguments, **parameters):
    """Asks again while the node is overloaded, as one on a busy machine may be."""
    while True:
        try:
            return ask(*arguments, **parameters)
        except ledgerd.Refused as refusal:
            if refusal.status != 503:
                raise
        time.sleep(0.1)


node = ledgerd.Node(address)
health, slot = patiently(node.get, "/health")
print(health["status"], slot >= 0)
while not (recent := patiently(node.get, "/transactions/recent", commitment="confirmed", limit=1)[0]["transactions"]):
    pass  # the node has just begun, and what is not confirmed yet may be undone
newest = recent[0]["signature"]
final, slot = patiently(node.wait_for, newest, "finalized")
print(final["signature"] == newest, final["slot"] <= slot)
print(len(patiently(node.get, "/transactions/recent", before=None, limit=1)[0]["transactions"]))
program = "/accounts/program/TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
print(patiently(node.get, program, limit=1, memcmp=["0:1", "1:1"])[0]["program_id"])


class Between(http.server.BaseHTTPRequestHandler):
    """Answers as no node does: at once where it is to wait, and not to the end, or not at all."""

    asked = 0

    def do_GET(self):
        Between.asked += 1
        self.send_response(200 if self.path.endswith("/half") else 404)
        self.send_header("Content-Length", 2)
        self.end_headers()
        if not self.path.endswith(("/half", "/none")):
            self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
threading.Thread(target=server.serve_forever, daemon=True).start()
between = ledgerd.Node(f"http://127.0.0.1:{server.server_port}")
for what in (
    lambda: between.get("/half"),
    lambda: between.get("/none"),
    lambda: between.wait_for("1" * 64, within=0.5),
    lambda: node.wait_for("1" * 64, within=0.1),
    lambda: node.wait_for("nobody's"),
    lambda: node.get("/account/nobody"),
    lambda: node.get("/account/11111111111111111111111111111111", commitement="finalized"),
    lambda: asyncio.run(follow(node, pubkeys=["nobody"])),
    lambda: asyncio.run(follow(node, commitement="finalized")),
    lambda: asyncio.run(follow(node, wallets=["11111111111111111111111111111111"], data_size=165)),
    lambda: ledgerd.Node("127.0.0.1:8080"),
    lambda: asyncio.run(follow(node, wallets=["11111111111111111111111111111111"] * 10_001)),
    lambda: asyncio.run(follow(node, pubkeys=["11111111111111111111111111111111"], commitment="confirmed")),
    lambda: asyncio.run(follow(node, pubkeys=["11111111111111111111111111111111"], commitment=None, tokens=True)),
):
    try:
        what()
    except ledgerd.Refused as refusal:
        print(refusal)
    except (OSError, ValueError) as wrong:
        print(wrong)
print(Between.asked < 10)
