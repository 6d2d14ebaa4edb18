package sim

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// params are the parameters of a simulated ledger. All numbers are integers, so that
// no machine rounds them differently.
type params struct {
	seed     uint64
	accounts uint64
	tps      uint64 // payments a second: all transactions but votes
	votes    uint64 // votes for each payment, in millionths
	failRate uint64 // failing payments, in millionths
	forkRate uint64 // branches begun per slot, in millionths
	skipRate uint64 // slots without a block, in millionths
	slotTime uint64 // nanoseconds; 0: no pacing
	finality uint64 // slots from a block to its finalized status
	zipf     uint64 // exponent in ten-thousandths; 0: off
	pools    uint64 // markets of two mints
	slots    uint64 // stop after this slot; 0: never
}

const (
	million     = 1_000_000
	rateDigits  = 6 // rates are counted in millionths
	zipfDigits  = 4 // the exponent is counted in ten-thousandths
	zipfUnit    = 10_000
	defaultSlot = 400 * time.Millisecond

	// maxPerSlot bounds the transactions due in one slot, so that a block stays well
	// under the memory of a small machine.
	maxPerSlot = million
	// maxForkRate is one branch in every group of slots.
	maxForkRate = million / groupSlots
)

func defaultParams() params {
	return params{
		seed: 1, accounts: 10_000, tps: 200, votes: 100_000,
		failRate: 20_000, forkRate: 20_000, skipRate: 50_000,
		slotTime: uint64(defaultSlot), finality: 32,
	}
}

// parseParams reads "name=value,name=value…". What is not named keeps its default. The error
// is one line that names the parameter and what it must be.
func parseParams(text string) (params, error) {
	p := defaultParams()
	if text == "" {
		return p, nil
	}
	named := make(map[string]bool)
	for field := range strings.SplitSeq(text, ",") {
		name, value, hasValue := strings.Cut(field, "=")
		if !hasValue {
			return params{}, fmt.Errorf("%q must be written name=value", field)
		}
		if named[name] {
			return params{}, fmt.Errorf("%s is given twice", name)
		}
		if err := p.set(name, value); err != nil {
			return params{}, err
		}
		named[name] = true
	}
	if payments := p.duePerSlot(p.tps); payments+mulDivMillion(payments, p.votes) > maxPerSlot*million {
		return params{}, fmt.Errorf("tps, votes and slot_time make more than %d transactions a slot", maxPerSlot)
	}
	if most := mintsAmong(ref(p.accounts)) - 1; p.pools > uint64(most) {
		return params{}, fmt.Errorf("pools=%d must be at most %d for %d accounts", p.pools, most, p.accounts)
	}
	return p, nil
}

// parameter is one of them, as it is named.
type parameter struct {
	name            string
	to              *uint64
	digits          int // after the point
	lowest, highest uint64
}

func (p *params) list() []parameter {
	return []parameter{
		{"seed", &p.seed, 0, 0, math.MaxUint64},
		{"accounts", &p.accounts, 0, 100, 20 * million},
		{"tps", &p.tps, 0, 1, million},
		{"votes", &p.votes, rateDigits, 0, 100 * million},
		{"fail_rate", &p.failRate, rateDigits, 0, million},
		{"slot_time", &p.slotTime, 0, 0, uint64(5 * time.Second)},
		{"fork_rate", &p.forkRate, rateDigits, 0, maxForkRate},
		{"skip_rate", &p.skipRate, rateDigits, 0, million / 2},
		{"finality", &p.finality, 0, 0, 1000},
		{"zipf", &p.zipf, zipfDigits, zipfUnit + 1, 10 * zipfUnit},
		{"pools", &p.pools, 0, 0, million},
		{"slots", &p.slots, 0, 1, math.MaxInt64},
	}
}

// set reads one parameter.
func (p *params) set(name, value string) error {
	names := make([]string, 0)
	for _, f := range p.list() {
		if names = append(names, f.name); f.name != name {
			continue
		}
		n, ok, wants := f.read(value)
		if !ok {
			return fmt.Errorf("%s=%q must be %s", name, value, wants)
		}
		*f.to = n
		return nil
	}
	last := len(names) - 1
	return fmt.Errorf("no parameter %q; there are %s and %s", name, strings.Join(names[:last], ", "), names[last])
}

// read reads a value, and says what it must be.
func (f *parameter) read(value string) (n uint64, ok bool, wants string) {
	n, ok = parseDecimal(value, f.digits)
	ok = ok && n >= f.lowest && n <= f.highest
	switch {
	case f.name == "slot_time": // longer slots would look like a source that stalled
		d, err := time.ParseDuration(value)
		ok = err == nil && d >= 0 && d <= time.Duration(f.highest) && d%time.Millisecond == 0
		return uint64(d), ok, "0 (as fast as it goes) or whole milliseconds from 1ms to 5s, such as 400ms"
	case f.name == "zipf":
		return n, ok || value == "off", "off or a plain decimal above 1 and at most 10 with at most 4 digits after the point"
	case f.digits == 0:
		return n, ok, fmt.Sprintf("a whole number from %d to %d", f.lowest, f.highest)
	}
	return n, ok, fmt.Sprintf("a plain decimal from %s to %s with at most %d digits after the point",
		formatDecimal(f.lowest, f.digits), formatDecimal(f.highest, f.digits), f.digits)
}

// slotLength returns how far block times advance in a slot, paced or not.
func (p *params) slotLength() time.Duration {
	return cmp.Or(time.Duration(p.slotTime), defaultSlot)
}

// duePerSlot returns the transactions that become due in a slot at a rate per second, in millionths.
func (p *params) duePerSlot(perSecond uint64) uint64 {
	return perSecond * uint64(p.slotLength()/time.Microsecond)
}

// String returns all parameters but slots in one fixed form: two equal strings
// mean the same ledger.
func (p *params) String() string {
	var all []string
	for _, f := range p.list() {
		text := formatDecimal(*f.to, f.digits)
		switch {
		case f.name == "slots":
			continue
		case f.name == "pools" && p.pools == 0: // a ledger without them is the one that it was before there were any
			continue
		case f.name == "zipf" && p.zipf == 0:
			text = "off"
		case f.name == "slot_time" && p.slotTime != 0:
			text = time.Duration(p.slotTime).String()
		}
		all = append(all, f.name+"="+text)
	}
	return strings.Join(all, ",")
}

// parseDecimal reads a plain decimal (digits, perhaps a point and at most digits more)
// as a count of 10^-digits.
func parseDecimal(s string, digits int) (n uint64, ok bool) {
	whole, fraction, hasPoint := strings.Cut(s, ".")
	if whole == "" || len(fraction) > digits || hasPoint && fraction == "" || strings.ContainsAny(s, "+-_") {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	return n, err == nil
}

// formatDecimal is the inverse of parseDecimal, without trailing zeros.
func formatDecimal(n uint64, digits int) string {
	s := fmt.Sprintf("%0*d", digits+1, n)
	return strings.TrimSuffix(s[:len(s)-digits]+"."+strings.TrimRight(s[len(s)-digits:], "0"), ".")
}
