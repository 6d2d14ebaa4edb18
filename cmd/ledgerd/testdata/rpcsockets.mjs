// Follows a node with the libraries of Solana as they are. For every line on the standard input it prints what each was told since its connection
// began. Arguments: the address of JSON-RPC, and a program whose accounts change.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, PublicKey } from '@solana/web3.js';
import { AccountLayout, TOKEN_PROGRAM_ID, unpackAccount } from '@solana/spl-token';
import { address, createSolanaRpc, createSolanaRpcSubscriptions, signature } from '@solana/kit';

const [url, program] = process.argv.slice(2);
const sockets = url.replace('http', 'ws');
const [token, processed] = [TOKEN_PROGRAM_ID.toBase58(), { commitment: 'processed' }];

// What a library was told: of forks since it began, of all else since its present connection did.
class Fold {
  constructor(name) { Object.assign(this, { name, starts: 0, forks: 0, wrong: 'it has not begun' }); }

  begin() {
    Object.assign(this, { starts: this.starts + 1, wrong: '', tip: 0, root: 0, signatures: 0, parsed: 0, accounts: {}, members: {} });
  }

  slot(told) {
    const [slot, parent, root] = [told.slot, told.parent, told.root].map(Number);
    assert(parent < slot && root <= parent);
    if (this.tip > 0 && parent !== this.tip) this.forks++;
    this.tip = slot;
  }

  rooted(root) {
    assert(root > this.root);
    this.root = Number(root);
  }

  // lost notes an error, which must be that the node was away: the next connection clears it.
  async lost(e) {
    if (e instanceof assert.AssertionError) throw e;
    this.wrong = String(e);
    await sleep(50);
  }
}

// Both libraries have promises that nobody awaits, so that a node that goes away ends a process that does not say otherwise: confirmTransaction
// of web3.js asks for the status beside its subscription (getTransactionConfirmationPromise), and kit aborts what a closed socket carried.
process.on('unhandledRejection', (e) => { if (e.name !== 'AbortError' && !/fetch failed|terminated/.test(e)) throw e; });

// web3.js comes back by itself. Of what a listener throws, and of an error that answers a subscription, it says no more than these words. It asks a
// socket that has closed again and again, and so is never told that it has: it is told here.
async function web3(fold) {
  const c = new Connection(url, { wsEndpoint: sockets, commitment: 'processed' });
  const say = console.error;
  console.error = (...words) => {
    say(...words);
    assert(typeof words[0] === 'string' && !/JSON-RPC/.test(words[0]));
    if (words[0].startsWith('Received error calling')) c._wsOnClose(1006);
  };
  c._rpcWebSocket.on('open', () => fold.begin());
  c.onSlotChange((s) => fold.slot(s));
  c.onRootChange((root) => fold.rooted(root));
  c.onProgramAccountChange(new PublicKey(program), ({ accountId, accountInfo: { owner, lamports, data } }, { slot }) => {
    assert(slot > 0 && (owner.toBase58() === program || lamports === 0));
    fold.members[accountId.toBase58()] = data.toString('base64');
  }, processed);
  c.onProgramAccountChange(TOKEN_PROGRAM_ID, ({ accountId, accountInfo }) => {
    if (accountInfo.data.length === AccountLayout.span && unpackAccount(accountId, accountInfo).address === accountId) fold.parsed++;
  }, processed);
  const members = await c.getProgramAccounts(new PublicKey(program));
  for (const { pubkey } of members) {
    c.onAccountChange(pubkey, ({ data }) => { fold.accounts[pubkey.toBase58()] = data.toString('base64'); }, processed);
  }
  await c.removeAccountChangeListener(c.onAccountChange(members[0].pubkey, () => {}, { commitment: 'finalized' }));
  for (;;) {
    try {
      const [sent] = (await c.getBlockSignatures(await c.getSlot('confirmed'), 'confirmed')).signatures; // which is not final yet
      const note = await new Promise((told) => c.onSignatureWithOptions(sent, told, { commitment: 'finalized', enableReceivedNotification: true }));
      const { slot } = await new Promise((told) => c.onSignature(sent, (_, at) => told(at), 'finalized'));
      assert.equal(slot, (await c.getSignatureStatus(sent)).value.slot);
      // It is known by now. Of one that failed web3.js throws what it failed with, if it hears that from getSignatureStatuses first.
      await c.confirmTransaction(sent, 'finalized').catch((e) => { if (!e.InstructionError) throw e; });
      if (note.type === 'received') fold.signatures++; // it was in time, and web3.js listened no more
    } catch (e) {
      await fold.lost(e);
    }
  }
}

// Of kit each subscription ends with the socket.
async function kit(fold) {
  const [rpc, told] = [createSolanaRpc(url), createSolanaRpcSubscriptions(sockets)];
  const base64 = { encoding: 'base64', ...processed };
  for (;;) {
    const stop = new AbortController();
    const each = async (pending, take, abortSignal = stop.signal) => {
      for await (const note of await pending.subscribe({ abortSignal })) if (take(note)) return;
    };
    // What comes in one read with the number of its subscription is lost to kit, as it may be on a busy machine: another signature is asked for then.
    const soon = async (pending, take) => {
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(), 5000);
      try {
        await each(pending, take, AbortSignal.any([stop.signal, late.signal]));
        return !late.signal.aborted;
      } catch (e) {
        if (!late.signal.aborted) throw e;
        return false;
      } finally {
        clearTimeout(timer);
      }
    };
    const outcomes = async () => {
      while (!stop.signal.aborted) {
        const slot = await rpc.getSlot({ commitment: 'confirmed' }).send();
        const block = await rpc.getBlock(slot, { transactionDetails: 'signatures', rewards: false, commitment: 'confirmed' }).send();
        const final = await soon(told.signatureNotifications(signature(block.signatures[0]), { commitment: 'finalized' }), ({ context, value }) => {
          assert(context.slot === slot && 'err' in value);
          return true;
        });
        if (!final) continue;
        await soon(told.signatureNotifications(signature(block.signatures[0]), { commitment: 'confirmed' }), () => ++fold.signatures); // which is known by now
      }
    };
    try {
      const members = await rpc.getProgramAccounts(address(program), base64).send();
      fold.begin();
      await Promise.all([
        outcomes(),
        each(told.slotNotifications(), (s) => fold.slot(s)),
        each(told.rootNotifications(), (root) => fold.rooted(root)),
        each(told.programNotifications(address(program), base64), ({ value }) => { [fold.members[value.pubkey]] = value.account.data; }),
        each(told.programNotifications(address(token), { encoding: 'jsonParsed', ...processed }), ({ value: { account } }) => {
          if (account.data.parsed) fold.parsed++;
        }),
        ...members.map(({ pubkey }) => each(told.accountNotifications(pubkey, base64), ({ value }) => { [fold.accounts[pubkey]] = value.data; })),
      ]);
    } catch (e) {
      stop.abort();
      await fold.lost(e);
    }
  }
}

const folds = [new Fold('web3.js'), new Fold('kit')];
web3(folds[0]);
kit(folds[1]);
for await (const _ of createInterface({ input: process.stdin })) console.log(JSON.stringify(folds));
process.exit(0);
