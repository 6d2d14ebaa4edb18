package sim

import (
	"crypto/sha256"
	"encoding/binary"

	"ledgerd/engine/ledger"
)

// ref is the position of an account. Every account that can ever exist has one, and with it
// a key, so that an account that closed and opens again is the same account. 0 is a
// program, so where a wallet is meant 0 means none.
type ref = uint32

// span is a run of positions.
type span struct{ first, count ref }

func (s span) end() ref        { return s.first + s.count }
func (s span) has(r ref) bool  { return r-s.first < s.count }
func (s span) at(i uint32) ref { return s.first + i }

// layout says which accounts there can be, and all of each that never changes.
//
// A holding is a token account. Holdings of a mint lie as far apart as there are mints: holding
// h is of mint h mod mints, and those below the number of mints belong to the issuers.
type layout struct {
	seed uint64

	programs     span // executable: programKeys
	wallets      span // at least half of the accounts asked for
	identities   span // the wallets of validators: they pay for votes and earn fees
	voteAccounts span
	mints        span // the first is that of wrapped lamports
	holdings     span
	openHoldings uint32 // how many of the holdings, from the first, exist at genesis

	collectibleMints    span // none exists at genesis
	collectibleHoldings span // two for each collectible: one that has it, one that gets it

	poolProgram span // one if there are pools
	pools       span
	vaults      span // two for each pool
}

// newLayout divides the accounts that exist at genesis. Pools come on top.
func newLayout(p *params) layout {
	l := layout{seed: p.seed}
	n := ref(p.accounts)
	next := ref(0)
	take := func(count ref) span {
		s := span{next, count}
		next += count
		return s
	}
	validators := min(max(n/500, 2), 20)
	l.programs = take(ref(len(programKeys)))
	l.wallets = take((n + 1) / 2)
	l.identities = take(validators)
	l.voteAccounts = take(validators)
	l.mints = take(mintsAmong(n))
	l.openHoldings = n - next
	// One holding in sixteen is closed: it opens when it is its turn.
	l.holdings = take(l.openHoldings + l.openHoldings/15 + 1)
	l.collectibleMints = take(mintsAmong(n))
	l.collectibleHoldings = take(2 * l.collectibleMints.count)
	l.poolProgram = take(ref(min(p.pools, 1)))
	l.pools = take(ref(p.pools))
	l.vaults = take(2 * l.pools.count)
	return l
}

// mintsAmong returns how many mints there are among so many accounts.
func mintsAmong(accounts ref) ref { return max(accounts/100, 4) }

// size returns how many positions there are.
func (l *layout) size() ref { return l.vaults.end() }

// The programs, by position, and who owns them.
var (
	programKeys = [...]ledger.Pubkey{
		ledger.SystemProgram, ledger.TokenProgram, ledger.Token2022Program, ledger.VoteProgram,
	}
	nativeLoader      = ledger.MustPubkey("NativeLoader1111111111111111111111111111111")
	upgradeableLoader = ledger.MustPubkey("BPFLoaderUpgradeab1e11111111111111111111111")
	programOwners     = [...]ledger.Pubkey{
		nativeLoader, ledger.MustPubkey("BPFLoader2111111111111111111111111111111111"),
		upgradeableLoader, nativeLoader,
	}
)

const (
	systemProgram ref = iota
	tokenProgram
	token2022Program
	voteProgram
)

// key returns the key of a position: the well-known one, or SHA-256 over "ledgerd sim key",
// the seed u64, the kind u8 and the number within the kind u32, little endian.
func (l *layout) key(r ref) ledger.Pubkey {
	switch {
	case l.programs.has(r):
		return programKeys[r]
	case r == l.mints.first:
		return ledger.NativeMint
	case l.poolProgram.has(r):
		return poolProgramKey
	}
	kind, number := byte(0), r
	for i, s := range [...]span{l.wallets, l.identities, l.voteAccounts, l.mints, l.holdings, l.collectibleMints, l.collectibleHoldings, l.pools, l.vaults} {
		if s.has(r) {
			kind, number = "wivmhcopa"[i], r-s.first
		}
	}
	var buf [32]byte
	b := append(buf[:0], "ledgerd sim key"...)
	b = binary.LittleEndian.AppendUint64(b, l.seed)
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint32(b, number)
	return sha256.Sum256(b)
}

// isWallet reports whether the position is owned by the system program.
func (l *layout) isWallet(r ref) bool { return l.wallets.has(r) || l.identities.has(r) }

// isMint reports whether the position is one of a mint, open or not.
func (l *layout) isMint(r ref) bool { return l.mints.has(r) || l.collectibleMints.has(r) }

// isHolding reports whether the position is one of a token account, open or not.
func (l *layout) isHolding(r ref) bool {
	return l.holdings.has(r) || l.collectibleHoldings.has(r) || l.isVault(r)
}

// isIssued reports whether the holding is the one that belongs to its mint's issuer.
func (l *layout) isIssued(holding ref) bool { return holding-l.holdings.first < l.mints.count }

// mintOf returns the mint of a holding.
func (l *layout) mintOf(holding ref) ref {
	if l.holdings.has(holding) {
		return l.mints.at((holding - l.holdings.first) % l.mints.count)
	}
	if l.isVault(holding) {
		return l.vaultMint(holding)
	}
	return l.collectibleMints.at((holding - l.collectibleHoldings.first) / 2)
}

// issuedOf returns the holding of a mint's issuer.
func (l *layout) issuedOf(mint ref) ref { return l.holdings.at(mint - l.mints.first) }

// ownerOf returns the wallet a holding belongs to, or the pool.
func (l *layout) ownerOf(holding ref) ref {
	if l.isVault(holding) {
		return l.poolOf(holding)
	}
	if l.holdings.has(holding) && l.isIssued(holding) {
		return l.issuerOf(l.mintOf(holding))
	}
	return l.anyWallet(choosesOwner, holding)
}

// issuerOf returns the wallet that may mint, freeze and thaw.
func (l *layout) issuerOf(mint ref) ref { return l.anyWallet(choosesIssuer, mint) }

func (l *layout) anyWallet(why purpose, r ref) ref {
	return l.wallets.at(uint32(scale(chosen(l.seed, why, uint64(r)), uint64(l.wallets.count))))
}

// hasCloseAuthority reports whether the issuer may close the holding too, which one holder
// in sixteen allowed.
func (l *layout) hasCloseAuthority(holding ref) bool {
	return l.holdings.has(holding) && l.mintOf(holding) != l.mints.first && holding%16 == 3
}

// programOf returns the token program of a mint: Token-2022 for every third, and for
// collectibles, whose mints must close, which the first program cannot.
func (l *layout) programOf(mint ref) ref {
	if number := mint - l.mints.first; l.mints.has(mint) && (number == 0 || number%3 != 0) {
		return tokenProgram
	}
	return token2022Program
}

// isScaled reports whether the amounts of a mint are shown scaled.
func (l *layout) isScaled(mint ref) bool {
	return l.mints.has(mint) && (mint-l.mints.first)%12 == 6
}

// decimalsOf returns the decimals of a mint.
func (l *layout) decimalsOf(mint ref) uint8 {
	switch {
	case mint == l.mints.first:
		return 9
	case l.mints.has(mint):
		return [...]uint8{6, 9, 8, 6, 2, 0}[(mint-l.mints.first)%6]
	}
	return 0
}

// The sizes of accounts.
const (
	mintBytes, closableMintBytes, scaledMintBytes = 82, 202, 226
	holdingBytes, holding2022Bytes                = 165, 170
	voteBytes                                     = 3762
	poolBytes                                     = 160
)

// rentOf returns the lamports a mint, a holding, a pool or a vote account is opened with: rent
// exemption for its size, (128 + bytes) × 6960.
func (l *layout) rentOf(r ref) uint64 {
	const lamportsPerByte, overheadBytes = 6960, 128
	size := uint64(voteBytes)
	switch {
	case l.pools.has(r):
		size = poolBytes
	case l.isHolding(r) && l.programOf(l.mintOf(r)) == tokenProgram:
		size = holdingBytes
	case l.isHolding(r):
		size = holding2022Bytes
	case l.collectibleMints.has(r):
		size = closableMintBytes
	case l.isMint(r) && l.isScaled(r):
		size = scaledMintBytes
	case l.isMint(r):
		size = mintBytes
	}
	return (overheadBytes + size) * lamportsPerByte
}
