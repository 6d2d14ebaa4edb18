// Names of programs and accounts that are the same on every network.

const names = new Map(Object.entries({
  '11111111111111111111111111111111': 'System Program',
  TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA: 'Token Program',
  TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb: 'Token-2022 Program',
  ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL: 'Associated Token Program',
  So11111111111111111111111111111111111111112: 'Wrapped SOL',
  Vote111111111111111111111111111111111111111: 'Vote Program',
  Stake11111111111111111111111111111111111111: 'Stake Program',
  Config1111111111111111111111111111111111111: 'Config Program',
  ComputeBudget111111111111111111111111111111: 'Compute Budget Program',
  AddressLookupTab1e1111111111111111111111111: 'Address Lookup Table Program',
  BPFLoaderUpgradeab1e11111111111111111111111: 'Upgradeable BPF Loader',
  BPFLoader2111111111111111111111111111111111: 'BPF Loader 2',
  NativeLoader1111111111111111111111111111111: 'Native Loader',
  MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr: 'Memo Program',
  SysvarC1ock11111111111111111111111111111111: 'Clock Sysvar',
  SysvarRent111111111111111111111111111111111: 'Rent Sysvar',
}));

/** What people call an account, undefined for most. @param {string} key */
export const nameOf = (key) => names.get(key);

/** The account that people call so, undefined for none. @param {string} name in letters of either case */
export const keyOf = (name) => [...names].find(([, one]) => one.toLowerCase() === name.toLowerCase())?.[0];
