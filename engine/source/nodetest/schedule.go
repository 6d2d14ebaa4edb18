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
	Finality   ledger.Slot
	Turns      []Turn
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

// maxForkDepth is the deepest fork that a follower has to bear.
const maxForkDepth = 32

// NewSchedule draws a schedule: a ledger of some 160 slots with a few turns, and one to six faults in its first 60, of JSON-RPC alone or of
// the stream too.
func NewSchedule(seed uint64, callsAlone bool) *Schedule {
	r := rand.New(rand.NewPCG(seed, 0x7e57))
	s := &Schedule{
		Seed: seed,
		// There are few ledgers, and many schedules of each.
		Parameters: fmt.Sprintf("seed=%d,accounts=120,tps=12,slot_time=0,fork_rate=0.15,skip_rate=0.1,slots=160", r.IntN(4)),
		Finality:   ledger.Slot(4 + r.IntN(20)),
		Config: Config{
			Seed: seed, InMemory: true, Token: "token-of-the-test",
			ReplaySlots: ledger.Slot([]int{5, 20, 60, 150}[r.IntN(4)]), NoReplay: r.IntN(12) == 0,
		},
	}
	for range r.IntN(4) {
		turn := Turn{Before: 3 + r.IntN(60), Slots: 1 + r.IntN(12)}
		if r.IntN(2) == 0 {
			turn.IsFork, turn.Slots = true, 1+r.IntN(maxForkDepth)
		}
		s.Turns = append(s.Turns, turn)
	}
	for range 1 + r.IntN(6) {
		s.Faults = append(s.Faults, Timed{r.IntN(60), drawFault(r, callsAlone)})
	}
	slices.SortStableFunc(s.Faults, func(x, y Timed) int { return x.Slot - y.Slot })
	return s
}

// drawFault draws a fault of JSON-RPC alone or of both sides.
func drawFault(r *rand.Rand, callsAlone bool) Fault {
	kinds, first := []FaultKind{Cut, Stall, Trickle, Down}, Kick
	if callsAlone {
		first = RateLimit
	}
	for k := first; k < faultKinds; k++ {
		kinds = append(kinds, k)
	}
	f := Fault{
		Kind: kinds[r.IntN(len(kinds))], N: 1 + r.IntN(8), How: r.IntN(2), For: time.Duration(1+r.IntN(200)) * time.Second / 10,
		Code: []codes.Code{codes.Internal, codes.ResourceExhausted, codes.OK, codes.Unavailable, codes.DataLoss, codes.OutOfRange}[r.IntN(6)],
	}
	switch f.Kind {
	case Cut, Stall, Trickle, Down:
		f.After = r.IntN(40_000)
		if callsAlone || r.IntN(3) == 0 {
			f.On = Calls
		}
	case Kick, WrongParent, Equivocate:
		f.N = 1
	case Garbage:
		f.N, f.After = 1, r.IntN(200)
	case OmitTx:
		f.After = r.IntN(50)
	case Duplicate:
		f.N = 1 + r.IntN(60)
	}
	return f
}
