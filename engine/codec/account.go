package codec

import "ledgerd/engine/ledger"

// flags of an account write and of an account. The lowest five are its Fields.
const (
	flagExecutable  = 1 << 5 // the value
	flagHasToken    = 1 << 6
	flagHasMint     = 1 << 7 // writes only
	flagProvenance  = 1 << 7 // accounts only
	minWriteBytes   = 1 + len(ledger.Pubkey{}) + 1
	minAccountBytes = minWriteBytes + 2
)

// appendState appends the part that writes and accounts have in common. flag is the one that only writes or only
// accounts have.
//
//	flags           owner, executable, rent epoch, token, mint known; executable;
//	                token present; flag
//	pubkey          key
//	lamports        number
//	[owner]         key
//	[rent epoch]    number, plus one modulo 2^64: the usual 2^64-1 takes one byte
//	[token]         token
func appendState(dst []byte, w *ledger.AccountWrite, flag byte) []byte {
	dst = append(dst, byte(w.Known&ledger.FieldsAll)|bit(w.Executable, flagExecutable)|bit(w.Token != nil, flagHasToken)|flag)
	dst = append(dst, w.Pubkey[:]...)
	dst = appendNumber(dst, w.Lamports)
	if w.Known&ledger.FieldOwner != 0 {
		dst = append(dst, w.Owner[:]...)
	}
	if w.Known&ledger.FieldRentEpoch != 0 {
		dst = appendNumber(dst, w.RentEpoch+1)
	}
	if w.Token != nil {
		dst = appendToken(dst, w.Token, w.TokenOwnerUnknown)
	}
	return dst
}

// state is the inverse of appendState. The token facts may have the named flags.
func (d *decoder) state(w *ledger.AccountWrite, named byte) (flags byte) {
	flags = d.byte()
	w.Known = ledger.Fields(flags) & ledger.FieldsAll
	w.Executable = flags&flagExecutable != 0
	d.bytes(w.Pubkey[:])
	w.Lamports = ledger.Lamports(d.number())
	if w.Known&ledger.FieldOwner != 0 {
		d.bytes(w.Owner[:])
	}
	if w.Known&ledger.FieldRentEpoch != 0 {
		w.RentEpoch = d.number() - 1
	}
	if flags&flagHasToken != 0 {
		w.Token, w.TokenOwnerUnknown = d.token(named)
	}
	return flags
}

// appendWrite appends an account write:
//
//	state           see appendState; flag: mint present
//	[mint]          mint
//	data            see appendData; or dataRead number, the account is only read (format 7 of records, 4 of events)
func appendWrite(dst []byte, w *ledger.AccountWrite, withData bool) []byte {
	dst = appendState(dst, w, bit(w.Mint != nil, flagHasMint))
	if w.Mint != nil {
		dst = AppendMint(dst, w.Mint)
	}
	if w.OnlyRead() {
		return appendNumber(dst, dataRead)
	}
	return appendData(dst, w.Known, w.Data, withData)
}

// dataRead stands in place of the length of data, where no length is: the data is not told, and the account is only read.
const dataRead = ledger.MaxDataBytes + 2

func (d *decoder) write(w *ledger.AccountWrite) {
	if d.state(w, tokenFlags|tokenOwnerUnknown)&flagHasMint != 0 {
		w.Mint = new(ledger.Mint)
		d.mint(w.Mint)
	}
	if d.tellsData {
		n := d.number()
		if w.ReadOnly = n == dataRead; !w.ReadOnly {
			d.data(n, &w.Known, &w.Data)
		}
	}
}

// appendData appends the data of a write or an account, if the format has data:
//
//	length          number, plus one; 0: not known
//	data            bytes
func appendData(dst []byte, known ledger.Fields, data ledger.Data, withData bool) []byte {
	switch {
	case !withData:
		return dst
	case known&ledger.FieldData == 0:
		return append(dst, 0)
	}
	return append(appendNumber(dst, data.Len()+1), data.Bytes()...)
}

// data is the inverse of appendData, after the length n.
func (d *decoder) data(n uint64, known *ledger.Fields, data *ledger.Data) {
	switch {
	case n == 0:
		return
	case n-1 > uint64(min(d.left(), ledger.MaxDataBytes)):
		d.fail("data beyond the end")
		return
	}
	*known |= ledger.FieldData
	*data = ledger.NewData(d.b[d.off : d.off+int(n-1)])
	d.off += int(n - 1)
}

// appendAccount appends an account:
//
//	state           see appendState; flag: field provenance present
//	since           number
//	provenance      number
//	[fields]        number × 4, the provenance of owner, executable, rent epoch, token; and mint, where that is known
//	data            see appendData
func appendAccount(dst []byte, a *ledger.Account, withData bool) []byte {
	w := a.Write()
	w.Known = a.Known
	dst = appendState(dst, &w, bit(a.FieldProvenance != nil, flagProvenance))
	dst = appendNumber(dst, a.Since)
	dst = appendNumber(dst, a.Provenance)
	if fields := a.FieldProvenance; fields != nil {
		for _, p := range fields[:storedProvenance(a.Known)] {
			dst = appendNumber(dst, p)
		}
	}
	return appendData(dst, a.Known, a.Data, withData)
}

// AppendAccount appends an account and its data.
func AppendAccount(dst []byte, a *ledger.Account) []byte { return appendAccount(dst, a, true) }

func (d *decoder) account(a *ledger.Account) {
	var w ledger.AccountWrite
	flags := d.state(&w, tokenFlags)
	*a = ledger.Account{
		Pubkey: w.Pubkey, Owner: w.Owner, Lamports: w.Lamports, RentEpoch: w.RentEpoch, Executable: w.Executable,
		Known: w.Known, Token: w.Token, Since: ledger.Provenance(d.number()), Provenance: ledger.Provenance(d.number()),
	}
	if flags&flagProvenance != 0 {
		a.FieldProvenance = new(ledger.FieldProvenance)
		for i := range storedProvenance(a.Known) {
			a.FieldProvenance[i] = ledger.Provenance(d.number())
		}
	}
	if d.tellsData {
		d.data(d.number(), &a.Known, &a.Data)
	}
}

// storedProvenance returns how many fields have their provenance in an encoding: the last one, the mint, only where it is known.
func storedProvenance(known ledger.Fields) int {
	n := len(ledger.FieldProvenance{})
	if known&ledger.FieldMint == 0 {
		n--
	}
	return n
}

// flags of a token account. The state takes the two bits from tokenStateShift on.
const (
	tokenDetails        = 1 << 0
	tokenDelegate       = 1 << 1
	tokenCloseAuthority = 1 << 2
	tokenStateShift     = 3
	tokenStateMask      = 3 << tokenStateShift
	tokenOwnerUnknown   = 1 << 5 // writes only

	tokenOnlyDetails = tokenDelegate | tokenCloseAuthority | tokenStateMask
	tokenFlags       = tokenDetails | tokenOnlyDetails
)

// appendToken appends token facts:
//
//	flags               details known; with details: delegate, close authority, state
//	                    in two bits; owner unknown (writes only)
//	mint                key
//	owner               key
//	amount              number
//	[delegated amount]  number, with details
//	[delegate]          key
//	[close authority]   key
func appendToken(dst []byte, t *ledger.TokenAccount, ownerUnknown bool) []byte {
	f := bit(ownerUnknown, tokenOwnerUnknown)
	details := &t.Details.Value
	if t.Details.Known {
		f |= tokenDetails | bit(details.Delegate.Known, tokenDelegate) |
			bit(details.CloseAuthority.Known, tokenCloseAuthority) | byte(details.State)<<tokenStateShift
	}
	dst = append(dst, f)
	dst = append(dst, t.Mint[:]...)
	dst = append(dst, t.Owner[:]...)
	dst = appendNumber(dst, t.Amount)
	if t.Details.Known {
		dst = appendNumber(dst, details.DelegatedAmount)
		dst = appendOptKey(dst, &details.Delegate)
		dst = appendOptKey(dst, &details.CloseAuthority)
	}
	return dst
}

// token reads token facts whose flags may be the named ones.
func (d *decoder) token(named byte) (t *ledger.TokenAccount, ownerUnknown bool) {
	f := d.flags(named)
	state := ledger.TokenState(f & tokenStateMask >> tokenStateShift)
	if state > ledger.TokenFrozen || (f&tokenDetails == 0 && f&tokenOnlyDetails != 0) {
		d.fail("bad token flags")
		return nil, false
	}
	if t = d.tokenFacts; t == nil {
		t = new(ledger.TokenAccount)
	}
	d.bytes(t.Mint[:])
	d.bytes(t.Owner[:])
	t.Amount = d.number()
	if f&tokenDetails != 0 {
		t.Details = ledger.Some(ledger.TokenDetails{
			State:           state,
			DelegatedAmount: d.number(),
			Delegate:        optKey[ledger.Pubkey](d, f&tokenDelegate != 0),
			CloseAuthority:  optKey[ledger.Pubkey](d, f&tokenCloseAuthority != 0),
		})
	}
	return t, f&tokenOwnerUnknown != 0
}

// flags of a mint.
const (
	mintSupply      = 1 << 0
	mintScaled      = 1 << 1
	mintScaledValue = 1 << 2
	mintApart       = 1 << 3 // supply or scaling has a provenance of its own
	mintFlags       = mintSupply | mintScaled | mintScaledValue | mintApart

	minMintBytes      = 3
	minMintWriteBytes = len(ledger.Pubkey{}) + minMintBytes
)

// AppendMint appends mint facts:
//
//	flags      supply known, scaled known, scaled, provenance apart
//	decimals   u8
//	[supply]   number
//	provenance number, 0 in writes
//	[apart]    number × 2, the provenance of supply and scaled; 0 where that is not known
func AppendMint(dst []byte, m *ledger.Mint) []byte {
	apart := m.SupplyProvenance != provenanceWith(m.Supply.Known, m) || m.ScaledProvenance != provenanceWith(m.Scaled.Known, m)
	dst = append(dst, bit(m.Supply.Known, mintSupply)|bit(m.Scaled.Known, mintScaled)|
		bit(m.Scaled.Known && m.Scaled.Value, mintScaledValue)|bit(apart, mintApart), m.Decimals)
	if m.Supply.Known {
		dst = appendNumber(dst, m.Supply.Value)
	}
	dst = appendNumber(dst, m.Provenance)
	if apart {
		dst = appendNumber(dst, m.SupplyProvenance)
		dst = appendNumber(dst, m.ScaledProvenance)
	}
	return dst
}

// provenanceWith returns the provenance of a fact that came with the decimals of a mint, 0 if it is not known.
func provenanceWith(known bool, m *ledger.Mint) ledger.Provenance {
	if known {
		return m.Provenance
	}
	return 0
}

func (d *decoder) mint(m *ledger.Mint) {
	f := d.flags(mintFlags)
	if f&mintScaledValue != 0 && f&mintScaled == 0 {
		d.fail("bad mint flags")
		return
	}
	m.Decimals = d.byte()
	if f&mintSupply != 0 {
		m.Supply = ledger.Some(d.number())
	}
	if f&mintScaled != 0 {
		m.Scaled = ledger.Some(f&mintScaledValue != 0)
	}
	m.Provenance = ledger.Provenance(d.number())
	m.SupplyProvenance, m.ScaledProvenance = provenanceWith(m.Supply.Known, m), provenanceWith(m.Scaled.Known, m)
	if f&mintApart != 0 {
		supply, scaled := ledger.Provenance(d.number()), ledger.Provenance(d.number())
		if supply == m.SupplyProvenance && scaled == m.ScaledProvenance || !m.Supply.Known && supply != 0 || !m.Scaled.Known && scaled != 0 {
			d.fail("bad mint provenance")
		}
		m.SupplyProvenance, m.ScaledProvenance = supply, scaled
	}
}

// AccountDecoder decodes many accounts without an allocation for each, but for their FieldProvenance and their data. The zero value is
// ready. It is not safe for concurrent use.
type AccountDecoder struct {
	WithoutData bool // the accounts are as AppendAccount wrote them before they had data
	account     ledger.Account
	token       ledger.TokenAccount
}

// Decode reads one account from the front of b and returns it and what follows. The account is valid until
// the next one is decoded, its data for ever. Errors match ErrCorrupt.
func (m *AccountDecoder) Decode(b []byte) (a *ledger.Account, rest []byte, err error) {
	m.token = ledger.TokenAccount{}
	d := decoder{b: b, tellsData: !m.WithoutData, tokenFacts: &m.token}
	d.account(&m.account)
	return &m.account, b[d.off:], d.err
}

// DecodeMint reads the facts of one mint from the front of b and returns what follows
// them. Its errors match ErrCorrupt.
func DecodeMint(b []byte) (m ledger.Mint, rest []byte, err error) {
	d := decoder{b: b}
	d.mint(&m)
	return m, b[d.off:], d.err
}
