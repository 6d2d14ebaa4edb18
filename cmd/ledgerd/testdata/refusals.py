"""Has a node refuse what the Python client asks for, and prints a line for each. Arguments: the module of the client, the node's address."""

import asyncio
import os
import sys

library, host = sys.argv[1:]
address = f"http://{host}"
sys.path.insert(0, os.path.dirname(library))
import ledgerd


async def follow(node, **wanted):
    async for frame in node.follow(**wanted):
        print("told", frame["type"])
        return


node = ledgerd.Node(address)
health, slot = node.get("/health")
print(health["status"], slot >= 0)
while not (recent := node.get("/transactions/recent", commitment="confirmed", limit=1)[0]["transactions"]):
    pass  # the node has just begun, and what is not confirmed yet may be undone
newest = recent[0]["signature"]
final, slot = node.wait_for(newest, "finalized")
print(final["signature"] == newest, final["slot"] <= slot)
for what in (
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
):
    try:
        what()
    except ledgerd.Refused as refusal:
        print(refusal)
    except ValueError as wrong:
        print(wrong)
