package nodetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"ledgerd/engine/ledger"
)

// SlotTime is how long a slot takes on a ledger that is told by the clock.
const SlotTime = 400 * time.Millisecond

// Schedule is a ledger, a node that tells it, and what goes wrong when, all drawn from a seed.
type Schedule struct {
	Seed       uint64
	Parameters string // of the simulator
	Plan       Plan
	Config     Config
	Faults     []Timed // by slot
}

// Timed is a fault that happens when so many slots were told.
type Timed struct {
	Slot  int
	Fault Fault
}

// HealAt is how many slots of a schedule's ledger are told before everything is well again.
const HealAt = 70

// NewSchedule draws a schedule: a ledger of some 160 slots with a few turns, and one to six faults in
// its first 60 slots, of JSON-RPC alone or of the stream too.
func NewSchedule(seed uint64, callsAlone bool) *Schedule {
	r := rand.New(rand.NewPCG(seed, 0x7e57))
	s := &Schedule{Seed: seed}
	// There are few ledgers, and many schedules of each.
	s.Parameters = fmt.Sprintf("seed=%d,accounts=120,tps=12,slot_time=0,fork_rate=0.08,skip_rate=0.08,slots=160", r.IntN(4))
	s.Plan.Finality = ledger.Slot(4 + r.IntN(20))
	for range r.IntN(4) {
		s.Plan.Turns = append(s.Plan.Turns, drawTurn(r))
	}
	slices.SortStableFunc(s.Plan.Turns, func(x, y Turn) int { return x.Before - y.Before })
	s.Config = Config{
		Seed: seed, InMemory: true, Token: "token-of-the-test",
		ReplaySlots: ledger.Slot([]int{5, 20, 60, 150}[r.IntN(4)]),
	}
	// The draws that are not used keep the faults of every seed, also those of which tests know what they find.
	_ = r.IntN(12)
	s.Config.NoReplay = r.IntN(12) == 0
	_ = r.IntN(3)
	for range 1 + r.IntN(6) {
		s.Faults = append(s.Faults, Timed{r.IntN(60), drawFault(r, callsAlone)})
	}
	slices.SortStableFunc(s.Faults, func(x, y Timed) int { return x.Slot - y.Slot })
	return s
}

func drawTurn(r *rand.Rand) Turn {
	t := Turn{Before: 3 + r.IntN(60), Kind: TurnKind(r.IntN(int(turnKinds))), Depth: 1}
	switch t.Kind {
	case Fork:
		t.Depth = 1 + r.IntN(maxForkDepth)
	case SkippedRun:
		t.Depth = 1 + r.IntN(12)
	}
	return t
}

// maxForkDepth is the deepest fork that a follower has to bear.
const maxForkDepth = 32

// drawFault draws a fault of JSON-RPC alone or of both sides.
func drawFault(r *rand.Rand, callsAlone bool) Fault {
	seconds := func(most int) time.Duration { return time.Duration(1+r.IntN(most*10)) * time.Second / 10 }
	var kinds []FaultKind
	if !callsAlone {
		for k := Cut; k <= OmitFinalized; k++ {
			kinds = append(kinds, k)
		}
	}
	kinds = append(kinds, Cut, Stall, Trickle, Down)
	for k := RateLimit; k <= Stale; k++ {
		kinds = append(kinds, k)
	}
	f := Fault{Kind: kinds[r.IntN(len(kinds))], N: 1 + r.IntN(6)}
	if f.Kind <= Down {
		f.N = 0
		if callsAlone || r.IntN(3) == 0 {
			f.On = Calls
		}
	}
	switch f.Kind {
	case Cut:
		f.After = r.IntN(40_000)
	case Stall:
		f.After, f.For = r.IntN(20_000), seconds(20)
	case Trickle:
		f.For = seconds(12)
	case Down:
		f.For = seconds(25)
	case Kick:
		f.N, f.Code = 1, []codes.Code{codes.Internal, codes.ResourceExhausted, codes.OK, codes.Unavailable, codes.DataLoss}[r.IntN(5)]
	case Refuse:
		f.Code = []codes.Code{codes.OutOfRange, codes.Internal, codes.Unavailable}[r.IntN(3)]
	case Duplicate:
		f.N = 1 + r.IntN(60)
	case Garbage:
		f.N, f.How, f.After = 1, r.IntN(8), r.IntN(200) // one in eight is huge
	case WrongParent, Equivocate:
		f.N, f.How = 1, r.IntN(2)
	case OmitTx:
		f.After = r.IntN(50)
	case RateLimit:
		f.N, f.How = 1+r.IntN(20), r.IntN(3)
	case ServerError, Missing, BadAnswer:
		f.N, f.How = 1+r.IntN(8), r.IntN(15)
	case Slow:
		f.For = seconds(12)
	case Hide:
		f.For = seconds(15)
	case Stale:
		f.N, f.For = 1+r.IntN(8), seconds(10)
	}
	return f
}
