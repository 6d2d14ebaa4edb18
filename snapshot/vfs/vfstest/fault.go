package vfstest

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// ErrCrashed is what every call returns once a Faulty has crashed.
var ErrCrashed = errors.New("the disk has no power any more")

// Kind is a kind of call, or several of them joined by |.
type Kind uint16

// Each method of FS and File that reaches the disk is of one kind. Close and Size are of none.
const (
	KindCreate Kind = 1 << iota
	KindOpen
	KindOpenWrite
	KindRemove
	KindRename
	KindMkdirAll
	KindList
	KindSyncDir
	KindLock
	KindFreeBytes
	KindReadAt
	KindWriteAt
	KindTruncate
	KindPreallocate
	KindSync
)

// KindChange is every kind that changes what is on the disk or makes it durable.
const KindChange = KindCreate | KindRemove | KindRename | KindMkdirAll | KindSyncDir |
	KindLock | KindWriteAt | KindTruncate | KindPreallocate | KindSync

var kindNames = [...]string{"create", "open", "open-write", "remove", "rename", "mkdir-all", "list", "sync-dir",
	"lock", "free-bytes", "read-at", "write-at", "truncate", "preallocate", "sync"}

// String returns the names of the kinds.
func (k Kind) String() string {
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Call is a call that reached a Faulty.
type Call struct {
	Kind Kind
	Name string // of the file or the directory; of a rename the old name
	To   string // of a rename the new name
	Err  error  // what it returned, be it the fault's or the disk's
}

// String returns the call as a line of a trace.
func (c Call) String() string {
	text := c.Kind.String() + " " + c.Name
	if c.To != "" {
		text += " to " + c.To
	}
	if c.Err != nil {
		text += fmt.Sprintf(" (%v)", c.Err)
	}
	return text
}

// Fault is how a call fails.
type Fault uint8

const (
	// Fail lets nothing of the call reach the disk and returns Plan.Err.
	Fail Fault = iota
	// Short lets half of the bytes of a WriteAt reach the disk and returns ENOSPC. Any other call
	// fails with ENOSPC.
	Short
	// Crash lets neither the call nor any later one reach the disk. All return ErrCrashed.
	Crash
)

// Plan says which calls fail, and how. The zero value lets all through.
type Plan struct {
	Call    int    // which of the calls that match fails, from 1; 0: none
	Fault   Fault  // how it fails
	Err     error  // what Fail returns; nil: EIO
	Lasting bool   // all calls that match from then on fail, until Heal
	Kinds   Kind   // the calls that match are of these kinds; 0: of any
	Name    string // the calls that match have this in a name; empty: any

	// LoseOnSyncFailure makes a Sync that fails by plan lose what it was to make durable, as Linux
	// does: it can still be read, but no later Sync makes it durable, and no crash leaves it.
	// It does so on files of a Memory.
	LoseOnSyncFailure bool

	// Before, if not nil, is called before each call, of whatever kind and name, without any lock.
	// Until it returns, the call neither counts nor reaches the disk: it may wait.
	Before func(Call)
}

// matches says whether the plan counts a call.
func (p *Plan) matches(c Call) bool {
	return (p.Kinds == 0 || p.Kinds&c.Kind != 0) && (strings.Contains(c.Name, p.Name) || c.To != "" && strings.Contains(c.To, p.Name))
}

// err returns what the faulted call returns.
func (p *Plan) err() error {
	switch {
	case p.Fault == Crash:
		return ErrCrashed
	case p.Fault == Short:
		return syscall.ENOSPC
	case p.Err != nil:
		return p.Err
	default:
		return syscall.EIO
	}
}
