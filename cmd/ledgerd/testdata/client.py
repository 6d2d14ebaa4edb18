"""Follows a node with the Python client, for a test: some subscriptions, each folded. For every line on the standard input it prints
what the folds hold by then. Arguments: the module of the client, the node's address, a file of the subscriptions."""

import asyncio
import json
import os
import sys

library, address, wishes = sys.argv[1:]
sys.path.insert(0, os.path.dirname(library))
import ledgerd


def fold_update(fold, frame, processed, whole):
    seq = frame["seq"]
    if not fold["listing"] and processed and (seq <= fold["seq"] or whole and seq != fold["seq"] + 1):
        fold["wrong"] = fold["wrong"] or f"number {seq} comes after {fold['seq']}"
    fold["seq"] = seq
    fold["accounts"][frame["pubkey"]] = f"{frame['lamports']} {frame['owner']}"


async def follow(fold, commitment, pubkeys, programs):
    try:
        async for frame in ledgerd.Node(address).follow(pubkeys=pubkeys or (), programs=programs or (), commitment=commitment):
            match frame["type"]:
                case "start":
                    fold["starts"] += 1
                    fold["seq"], fold["listing"] = frame["seq"], frame["snapshot"]
                    fold["accounts"].clear()
                case "ready":
                    fold["listing"] = False
                case "account_update":
                    fold_update(fold, frame, commitment == "processed", not pubkeys and not programs)
                case "gap":
                    fold["gaps"] += 1
    except Exception as end:
        fold["wrong"] = fold["wrong"] or f"the stream ended: {end!r}"


async def main():
    with open(wishes) as file:
        wanted = json.load(file)
    folds = [{"name": w["name"], "starts": 0, "wrong": "", "gaps": 0, "seq": 0, "listing": False, "accounts": {}} for w in wanted]
    following = [asyncio.create_task(follow(f, w["commitment"], w["pubkeys"], w["programs"])) for f, w in zip(folds, wanted)]
    print("following", flush=True)
    while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        print(json.dumps([{k: f[k] for k in ("name", "starts", "wrong", "gaps", "accounts")} for f in folds]), flush=True)
    os._exit(0 if following else 1)


try:
    ledgerd._parts({"pubkeys": [""] * 10_001, "programs": ()}, {})
    sys.exit("more names than a connection takes are not refused")
except ValueError:
    asyncio.run(main())
