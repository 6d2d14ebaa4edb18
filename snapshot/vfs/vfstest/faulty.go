package vfstest

import "slices"

// Faulty is a Memory as a program sees it whose calls fail as a Plan says. It counts each method of FS and File but
// for Close and Size, whether it succeeds or not, once per call of the method. It is safe for concurrent use.
//
// A test that tries a fault at every call runs once with Plan{} and asks for Calls, and then
// once for each number up to that, or until a run ends without Hit. After a Crash the program
// under test is stopped, and started again on what Crash of the Memory leaves.
type Faulty struct {
	*Memory

	// The Memory's lock guards what follows.
	plan    Plan
	calls   int
	hit     bool
	healed  bool
	crashed bool
	trace   []Call
}

// NewFaulty returns the disk with faults. The Memory itself goes on without.
func NewFaulty(m *Memory, plan Plan) *Faulty {
	f := &Faulty{plan: plan}
	f.Memory = &Memory{m.state, f}
	return f
}

// Arm puts another plan in place, and counts and traces from the beginning again.
// A crash lasts all the same.
func (f *Faulty) Arm(plan Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.calls, f.hit, f.healed, f.trace = plan, 0, false, false, nil
}

// Heal ends the faults of the plan, a lasting one too. A crash lasts all the same.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.healed = true
}

// Calls returns how many calls matched the plan so far, those that failed included, those after a
// crash not.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Hit says whether the fault struck.
func (f *Faulty) Hit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

// Trace returns all calls, whether they matched or not, those after a crash not, in order.
func (f *Faulty) Trace() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.trace)
}

func (f *Faulty) before(c Call) {
	f.mu.Lock()
	hook := f.plan.Before
	f.mu.Unlock()
	if hook != nil && c.Kind != 0 {
		hook(c)
	}
}

// doLocked takes a call through the plan.
func (f *Faulty) doLocked(c Call, disk func() error, instead func(Plan)) error {
	if f.crashed {
		return c.wrap(ErrCrashed)
	}
	struck := false
	if f.plan.matches(c) {
		f.calls++
		due := f.calls == f.plan.Call || f.plan.Lasting && f.calls > f.plan.Call
		struck = f.plan.Call > 0 && due && !f.healed
	}
	if !struck {
		c.Err = c.wrap(disk())
	} else {
		f.hit, f.crashed = true, f.plan.Fault == Crash
		c.Err = c.wrap(f.plan.err())
		if instead != nil {
			instead(f.plan)
		}
	}
	f.trace = append(f.trace, c)
	return c.Err
}
