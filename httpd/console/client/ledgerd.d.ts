// Types of ledgerd.js, which says what they mean.

export type Commitment = 'processed' | 'confirmed' | 'finalized';

/** Which version of the ledger is read, and what of a list. Names are those of the interface. */
export interface Read {
  commitment?: Commitment;
  min_slot?: bigint | number;
  wait_ms?: number;
  include?: 'token' | 'data' | 'token,data' | 'signatures' | 'transactions' | 'details';
  /** With include=data: offset and length of the part that is shown, as in '136,16'. */
  data_slice?: string;
  /** Of a program's accounts only those whose data has this length, and these bytes: offset and base58, as in '8:So11…'. */
  data_size?: number;
  memcmp?: string[];
  limit?: number;
  cursor?: string;
  before?: string;
  after?: string;
  order?: 'newest' | 'oldest';
  status?: 'success' | 'failed';
  from_slot?: bigint | number;
  to_slot?: bigint | number;
  signal?: AbortSignal;
}

export interface Answer<T> {
  value: T;
  /** Of the version that it was computed from; null before the first block. */
  slot: bigint | null;
  lagMs: number;
  /** Fields that no source has told of some account in it. */
  partial: string[];
}

export interface Health {
  status: 'ok'; version: string; timestamp: string;
  /** With include=details: what a healthy node cannot answer. */
  details?: string;
}
export interface Status {
  status: 'running'; uptime: string; version: string;
  node_info: { node_id: string; node_type: 'indexer'; peer_count: number };
}
export interface Block {
  slot: bigint; blockhash: string; parent_slot: bigint; timestamp: string | null; transactions: number;
}
export interface FullBlock extends Block {
  previous_blockhash: string | null; block_height: bigint | null; commitment: Commitment;
  signatures?: string[]; transaction_records?: Transaction[];
}
export interface Transaction {
  signature: string; slot: bigint; success: boolean | null; fee: bigint | null; accounts: string[]; timestamp: string | null;
}
export interface AccountTransactions {
  pubkey: string; transactions: Transaction[]; history_from: bigint;
  /** With the newest first; null at the end. */
  next_before?: string | null;
  /** With the oldest first; null at the end. */
  next_after?: string | null;
}
export interface TokenFacts {
  mint: string; owner: string; amount: string; decimals: number | null; ui_amount: string | null; state: 'initialized' | 'frozen' | null;
  is_native: boolean; delegate: string | null; delegated_amount: string | null; close_authority: string | null;
}
export interface MintFacts { decimals: number; supply: string | null }
export interface Account {
  pubkey: string; lamports: bigint; owner: string; executable: boolean; rent_epoch: bigint;
  /** With include=token. */
  token?: TokenFacts | null; mint?: MintFacts | null;
  /** With include=data: how much data there is, and the data in base64; null where it is not known. */
  space?: number | null; data?: string | null;
}
export interface Balance { pubkey: string; lamports: bigint; slot: bigint }
export interface Token extends Omit<TokenFacts, 'owner'> { token_account: string; program_id: string }

export interface Budget {
  /** 0: unlimited, or nothing was asked yet. */
  limit: number; remaining: number; reset: Date | null;
}

/** A browser's WebSocket, or that of npm's ws. */
export type SocketClass = new (address: string, protocols?: string[]) => {
  onopen: ((event: any) => void) | null; onmessage: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null; onclose: ((event: any) => void) | null;
  send(text: string): void;
  close(code?: number): void;
};

export interface Options {
  /** How long a call waits in all, in ms, for a node that asks it to come later. 0: such a call fails at once. */
  patience?: number;
  apiKey?: string;
  fetch?: typeof fetch;
  WebSocket?: SocketClass;
}

/** At most 10,000 names in all, as many as a node takes on one connection: more of them throw a RangeError. */
export interface Subscription {
  pubkeys?: string[]; programs?: string[]; wallets?: string[];
  commitment?: Commitment; tokens?: boolean; data?: boolean; conflate?: boolean;
  /** Of the programs' accounts only those whose data, before or after a block, has this length and these bytes in base58. */
  data_size?: number; memcmp?: { offset: number; bytes: string }[];
  /** Goes on after this number of an update, as a program does that kept it beside its state: no start is told then. */
  after?: bigint;
}

export interface Update {
  type: 'account_update'; pubkey: string; lamports: bigint; timestamp: string | null;
  slot: bigint; seq: bigint; owner: string; executable: boolean; commitment: Commitment;
  token?: { mint: string; owner: string; amount: string; decimals: number | null } | null;
  space?: number | null; data?: string | null;
}

/** What a stream tells. All that was told before a start is void. */
export interface Handler {
  start?(at: { slot: bigint; seq: bigint; snapshot: boolean }): void;
  /** The snapshot is complete. That of more than 1,250 names comes in parts, and what happens meanwhile is told between them. */
  ready?(): void;
  update?(update: Update): void;
  rollback?(frame: { from_slot: bigint; to_slot: bigint; seq: bigint }): void;
  slotEnd?(frame: { slot: bigint; seq: bigint }): void;
  gap?(frame: { from_seq: bigint; to_seq: bigint }): void;
  heartbeat?(frame: { slot: bigint; seq: bigint; timestamp: string }): void;
  resumed?(fromSeq: bigint): void;
  disconnected?(why: string, waitMs: number): void;
  /** The node refused the subscription itself: the stream has ended. */
  failed?(error: StatusError): void;
}

export interface Stream {
  readonly seq: bigint; readonly connections: number; readonly connected: boolean;
  close(): void;
  reconnect(): void;
}

export class StatusError extends Error {
  readonly status: number; readonly text: string; readonly details: string; readonly retryAfter: number;
}

/** The fields that are integers of the ledger, which parse reads as BigInt. */
export const integers: ReadonlySet<string>;

export function parse(text: string): unknown;

/** For JSON.stringify, which takes no BigInt: integers of the ledger as strings of digits. */
export function decimal(name: string, value: unknown): unknown;

/** How many seconds an answer asks to wait: 0 where it does not say so, and no more than a timer takes, which is 24 days. */
export function retryAfter(headers: Headers): number;

/** Asks for a list page by page, from the one that is read first to the last. */
export function pages<T>(ask: (page: Read) => Promise<Answer<T>>, read?: Read): AsyncGenerator<Answer<T>>;

export class Client {
  readonly base: string;
  readonly budget: Budget;
  constructor(address: string, options?: Options);
  health(read?: Read): Promise<Answer<Health>>;
  status(): Promise<Answer<Status>>;
  latestBlock(read?: Read): Promise<Answer<Block>>;
  block(slot: bigint | number, read?: Read): Promise<Answer<FullBlock>>;
  transaction(signature: string, read?: Read): Promise<Answer<Transaction>>;
  /** Returns a transaction once it has reached a level, which is confirmed unless another is named; after some ms it throws the node's 404. */
  waitFor(signature: string, commitment?: Commitment, options?: { within?: number; signal?: AbortSignal }): Promise<Answer<Transaction>>;
  recent(read?: Read): Promise<Answer<{ transactions: Transaction[]; next_before: string | null }>>;
  account(pubkey: string, read?: Read): Promise<Answer<Account>>;
  transactions(pubkey: string, read?: Read): Promise<Answer<AccountTransactions>>;
  balance(pubkey: string, read?: Read): Promise<Answer<Balance>>;
  tokens(wallet: string, read?: Read): Promise<Answer<{ pubkey: string; tokens: Token[]; next_cursor: string | null }>>;
  /** The token accounts that hold the most of a mint, the largest first; a node answers that with --index-mints. */
  holders(mint: string, read?: Read): Promise<Answer<{ pubkey: string; holders: Account[] }>>;
  program(program: string, read?: Read): Promise<Answer<{ program_id: string; accounts: Account[]; next_cursor: string | null }>>;
  accounts(pubkeys: string[], read?: Read): Promise<Answer<{ accounts: (Account | null)[] }>>;
  stream(subscription?: Subscription, handler?: Handler): Stream;
}
