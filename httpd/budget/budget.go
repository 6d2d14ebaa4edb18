// Package budget bounds the memory that clients have a node hold, all of it together: what waits for WebSockets and what these name, and long answers of REST. The
// caps of connections and sockets bound what each of them takes by itself, the mailboxes of shards have a fixed length, and each query in
// them belongs to a connection.
//
// A [Budget] has a [Part] for each kind of holder. When memory runs short, refusals come in this order, each once so much of
// the limit is taken by all together:
//
//	one half             accounts that are not held are fetched no more
//	five eighths         long answers of REST do not begin
//	three quarters       snapshots and resumes of sockets do not begin
//	from there to 7/8    the sockets that hold more than is left are closed
//	seven eighths        sockets that are new are refused
//
// The last eighth is for answers of REST alone: so whatever sockets hold, some are made. What costs the least to ask for again is refused
// first, and a small holder finds room whatever the large ones hold.
//
// One client's answers may take an eighth, and as much each what its sockets name, hold of the log, and have not read of snapshots: who reads slowly
// holds what they asked for, and not what all share.
package budget

import (
	"cmp"
	"net/netip"
	"sync"
	"sync/atomic"
)

// DefaultBytes is what clients may have a node hold unless somebody says more.
const DefaultBytes = 128 << 20

// Budget is the memory that clients may have a node hold. Any goroutine may use it.
type Budget struct {
	limit   int64
	Answers Part // long answers of REST
	// Sockets is what waits for sockets: packets with their overhead, buffers that are being written, snapshots while they are made, and
	// backlogs; their names, and messages that are not whole yet.
	Sockets Part
}

// Part is what one kind of holder has taken from a Budget.
type Part struct {
	whole *Budget
	used  atomic.Int64
	// begin is what all may have taken for something to begin; most, for what has begun to go on.
	begin, most int64
	// own is what the part may take whatever the others hold.
	own int64

	mu      sync.Mutex
	clients map[netip.Addr]int64 // what TakeFor and HoldFor have taken; a client that holds nothing is not in it
}

// New returns a budget of so many bytes, nothing of which is taken; 0 stands for DefaultBytes.
func New(bytes int64) *Budget {
	b := &Budget{limit: cmp.Or(bytes, DefaultBytes)}
	eighth := b.limit / 8
	b.Answers.whole, b.Answers.begin, b.Answers.most, b.Answers.own = b, 5*eighth, b.limit, eighth
	b.Sockets.whole, b.Sockets.begin, b.Sockets.most = b, 6*eighth, 7*eighth
	b.Answers.clients = make(map[netip.Addr]int64)
	return b
}

// Limit returns the bytes that may be held.
func (b *Budget) Limit() int64 { return b.limit }

// Used returns the bytes that are taken.
func (b *Budget) Used() int64 { return b.Answers.Used() + b.Sockets.Used() }

// MayFetch reports whether accounts that are not held may be fetched.
func (b *Budget) MayFetch() bool { return b.Used() <= b.limit/2 }

// Used returns the bytes that the part has taken.
func (p *Part) Used() int64 { return max(p.used.Load(), 0) }

// Take takes so many bytes for something that begins; false if there is no room for them.
func (p *Part) Take(bytes int) bool {
	p.Hold(bytes)
	if p.whole.Used() <= p.begin || p.Used() <= p.own {
		return true
	}
	p.Hold(-bytes)
	return false
}

// Fits reports whether Take takes so many bytes where nothing else is taken.
func (p *Part) Fits(bytes int) bool { return int64(bytes) <= p.begin }

// Hold takes so many bytes for something that has begun, or gives them back when they are negative.
func (p *Part) Hold(bytes int) { p.used.Add(int64(bytes)) }

// TakeFor is Take for one of many clients. It refuses more than an eighth of the budget to each, but never what would be all that the client
// holds: where the budget is small, one answer may be larger than that. What is larger than a half of the eighth counts as a half: the client may have
// read all of the answer before, of which a part is still to be given back.
func (p *Part) TakeFor(client netip.Addr, bytes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	held, share := p.clients[client], p.whole.limit/8
	if held > 0 && held+min(int64(bytes), share/2) > share || !p.Take(bytes) {
		return false
	}
	p.setLocked(client, held+int64(bytes))
	return true
}

// HoldFor is Hold for one of many clients.
func (p *Part) HoldFor(client netip.Addr, bytes int) {
	p.Hold(bytes)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setLocked(client, p.clients[client]+int64(bytes))
}

// setLocked notes what a client holds.
func (p *Part) setLocked(client netip.Addr, bytes int64) {
	if bytes <= 0 {
		delete(p.clients, client)
		return
	}
	p.clients[client] = bytes
}

// Allows reports whether a holder that has taken so many bytes itself may keep them. Where others could not begin any more, it may
// keep as much as is left for all: so the one that asks for more than that is the one that is refused.
func (p *Part) Allows(own int) bool {
	used := p.whole.Used()
	return used <= p.begin || int64(own) <= p.most-used
}
