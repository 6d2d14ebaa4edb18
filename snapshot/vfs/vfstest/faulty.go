package vfstest

import (
	"io"
	"slices"
	"sync"

	"ledgerd/snapshot/vfs"
)

// Faulty wraps a disk, counts the calls that reach it, and makes one of them, or more, fail as a
// Plan says. It counts each method of FS and File but for Close and Size, whether it succeeds or
// not, once per call of the method. It is safe for concurrent use.
//
// A test that tries a fault at every call runs once with Plan{} and asks for Calls, and then
// once for each number up to that, or until a run ends without Hit. After a Crash the program
// under test is stopped, and started again on what Memory.Crash makes of the wrapped disk.
type Faulty struct {
	inner vfs.FS

	mu       sync.Mutex // guards what follows
	plan     Plan
	calls    int
	hit      bool
	healed   bool
	crashed  bool
	trace    []Call
	underway int        // calls that are on the disk now
	returned *sync.Cond // one of them returned
}

// NewFaulty returns the disk with faults.
func NewFaulty(inner vfs.FS, plan Plan) *Faulty {
	f := &Faulty{inner: inner, plan: plan}
	f.returned = sync.NewCond(&f.mu)
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

// Trace returns all calls, whether they matched or not, those after a crash not, in the order
// in which they returned.
func (f *Faulty) Trace() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.trace)
}

// do takes a call through the plan: it calls disk, or if the call is to fail, instead,
// which may be nil.
func (f *Faulty) do(c Call, disk func() error, instead func(Plan)) error {
	f.before(c)
	struck, plan, err := f.begin(c)
	if err != nil {
		return err
	}
	if !struck {
		c.Err = disk()
	} else {
		c.Err = pathError(c.Kind.String(), c.Name, plan.err())
		if instead != nil {
			instead(plan)
		}
	}
	f.end(c)
	return c.Err
}

func (f *Faulty) before(c Call) {
	f.mu.Lock()
	hook := f.plan.Before
	f.mu.Unlock()
	if hook != nil {
		hook(c)
	}
}

// begin counts a call and says whether it is to fail. It returns an error if nothing reaches
// the disk any more. The call that crashes the disk waits for those that are on it: once it
// returns, the disk does not change any more.
func (f *Faulty) begin(c Call) (struck bool, plan Plan, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.Err = pathError(c.Kind.String(), c.Name, ErrCrashed)
	if f.crashed {
		return false, f.plan, c.Err
	}
	if f.plan.matches(c) {
		f.calls++
		due := f.calls == f.plan.Call || f.plan.Lasting && f.calls > f.plan.Call
		struck = f.plan.Call > 0 && due && !f.healed
	}
	f.hit = f.hit || struck
	if struck && f.plan.Fault == Crash {
		f.crashed = true
		f.trace = append(f.trace, c)
		for f.underway > 0 {
			f.returned.Wait()
		}
		return true, f.plan, c.Err
	}
	f.underway++
	return struck, f.plan, nil
}

func (f *Faulty) end(c Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace = append(f.trace, c)
	f.underway--
	f.returned.Broadcast()
}

// Create implements vfs.FS.
func (f *Faulty) Create(name string) (vfs.File, error) {
	return f.open(KindCreate, name, f.inner.Create)
}

// Open implements vfs.FS.
func (f *Faulty) Open(name string) (vfs.File, error) { return f.open(KindOpen, name, f.inner.Open) }

// OpenWrite implements vfs.FS.
func (f *Faulty) OpenWrite(name string) (vfs.File, error) {
	return f.open(KindOpenWrite, name, f.inner.OpenWrite)
}

func (f *Faulty) open(kind Kind, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	inner, err := ask(f, Call{Kind: kind, Name: name}, func() (vfs.File, error) { return open(name) })
	if err != nil {
		return nil, err
	}
	return &faultyFile{disk: f, inner: inner, name: name}, nil
}

// ask is do for a call that returns something.
func ask[T any](f *Faulty, c Call, disk func() (T, error)) (answer T, err error) {
	err = f.do(c, func() (err error) {
		answer, err = disk()
		return err
	}, nil)
	return answer, err
}

// Remove implements vfs.FS.
func (f *Faulty) Remove(name string) error {
	return f.do(Call{Kind: KindRemove, Name: name}, func() error { return f.inner.Remove(name) }, nil)
}

// Rename implements vfs.FS.
func (f *Faulty) Rename(from, to string) error {
	return f.do(Call{Kind: KindRename, Name: from, To: to}, func() error { return f.inner.Rename(from, to) }, nil)
}

// MkdirAll implements vfs.FS.
func (f *Faulty) MkdirAll(dir string) error {
	return f.do(Call{Kind: KindMkdirAll, Name: dir}, func() error { return f.inner.MkdirAll(dir) }, nil)
}

// List implements vfs.FS.
func (f *Faulty) List(dir string) ([]string, error) {
	return ask(f, Call{Kind: KindList, Name: dir}, func() ([]string, error) { return f.inner.List(dir) })
}

// SyncDir implements vfs.FS.
func (f *Faulty) SyncDir(dir string) error {
	return f.do(Call{Kind: KindSyncDir, Name: dir}, func() error { return f.inner.SyncDir(dir) }, nil)
}

// Lock implements vfs.FS. Letting the lock go works even after a crash.
func (f *Faulty) Lock(name string) (io.Closer, error) {
	return ask(f, Call{Kind: KindLock, Name: name}, func() (io.Closer, error) { return f.inner.Lock(name) })
}

// FreeBytes implements vfs.FS.
func (f *Faulty) FreeBytes(dir string) (uint64, error) {
	return ask(f, Call{Kind: KindFreeBytes, Name: dir}, func() (uint64, error) { return f.inner.FreeBytes(dir) })
}
