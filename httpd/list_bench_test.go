package httpd

import (
	"encoding/binary"
	"math/rand/v2"
	"syscall"
	"testing"

	"ledgerd/engine/ledger"
)

// pageLedger answers the lists of some programs with all there is.
type pageLedger struct {
	*fakeLedger
	pages map[ledger.Pubkey][]ledger.Account
}

func (l *pageLedger) Program(q ledger.Query, program ledger.Pubkey, _ ledger.Opt[ledger.Pubkey], _ int) ([]ledger.Account, bool, ledger.View, error) {
	return l.pages[program], false, ledger.View{Head: l.head, Commitment: q.Commitment}, nil
}

// add makes up n accounts of a program, most of which look alike but for their lamports.
func (l *pageLedger) add(random *rand.Rand, program ledger.Pubkey, n int) {
	for range n {
		a := ledger.Account{Owner: program, Lamports: ledger.Lamports(random.Uint64() >> random.IntN(64)), RentEpoch: 1<<64 - 1, Known: ledger.FieldsShown}
		for i := 0; i < len(a.Pubkey); i += 8 {
			binary.BigEndian.PutUint64(a.Pubkey[i:], random.Uint64()>>(random.IntN(8)/7*40))
		}
		switch random.IntN(16) {
		case 0:
			a.Executable = true
		case 1:
			a.RentEpoch = random.Uint64()
		case 2:
			a.Known = ledger.FieldOwner
		}
		l.pages[program] = append(l.pages[program], a)
	}
}

// BenchmarkProgramHandler answers 1,000 accounts of a program at a time. CPU-ns/record is of the
// whole process.
func BenchmarkProgramHandler(b *testing.B) {
	const records = 1000
	program := testKey(7)
	l := &pageLedger{newFakeLedger(), make(map[ledger.Pubkey][]ledger.Account)}
	l.add(rand.New(rand.NewPCG(1, 2)), program, records)
	s, ctx := handled(b, "/api/accounts/program/"+program.String())
	s.ledger = l
	ctx.Request.Header.Del("Accept-Encoding")
	b.ReportAllocs()
	begun := cpuTime(b)
	for b.Loop() {
		ctx.Response.Reset()
		s.handle(ctx)
	}
	b.ReportMetric(float64(cpuTime(b)-begun)/float64(b.N)/records, "CPU-ns/record")
}

// cpuTime returns how many nanoseconds processors were at work for this process.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
