package wire

import (
	"cmp"
	"errors"
	"time"
)

// What a client's records of TLS cost, and how much it may spend on each connection. A KeyUpdate costs this node some 13 µs, and a client that goes on
// with them as fast as they are allowed, on 100 connections and on 1,000 new ones a minute, takes 3 % of a core. A client that sends each byte of a
// request by itself gets through a request of a few hundred bytes.
const (
	recordPrice    = 10 // of a record without data
	dataPrice      = 1  // of one with data
	smallReadPrice = 1  // of a read from the socket of less than smallRead
	smallRead      = 512
	bytesPerUnit   = 32 // of a record without data, which may be part of a message that TLS keeps until it is whole

	allowanceBurst     = 512
	allowancePerSecond = 100
	allowanceUnit      = time.Second / allowancePerSecond
)

// recordHeadBytes is the head of a record of TLS: its type, the version, and its length in the last two bytes (RFC 8446, section 5.1). The types are those
// from firstType to lastType; applicationData is that of data, and of all that is encrypted where TLS is 1.3.
const (
	recordHeadBytes                      = 5
	firstType, applicationData, lastType = 20, 23, 24
)

var errWasteful = errors.New("the peer sends more records of TLS without data than it may")

// allowance is what a client may spend on records of TLS that bring no data, and on data in tiny pieces. TLS itself bounds the records without data that
// follow one another, and not how many there are. The first data must have begun within a burst, and so the memory that a handshake takes is bounded
// before it is read. The zero value is a full allowance.
type allowance struct {
	full    time.Time // when it is full again
	heard   bool      // there was data
	head    [recordHeadBytes]byte
	headLen int // bytes of the present head that were read
	bodyLen int // bytes of the present record that are still to come
}

// most returns how much may be read at once: no more than the rest of the present record, so that its data gives back what was paid too much before the next
// begins; and between records not many of them, for the same reason.
func (a *allowance) most() int { return cmp.Or(a.bodyLen, smallRead) }

// pay pays for bytes that were read, for each record as if it had no data. It returns false if the client cannot: it must not be in debt when a record
// begins, and before there was any data a record that cannot be data must not bring it into debt.
func (a *allowance) pay(p []byte) bool {
	now := time.Now()
	if len(p) < smallRead {
		a.spend(smallReadPrice, now)
	}
	for len(p) > 0 {
		if a.headLen < recordHeadBytes {
			n := copy(a.head[a.headLen:], p)
			a.headLen += n
			p = p[n:]
			if a.headLen < recordHeadBytes {
				break
			}
			if a.head[0] < firstType || a.head[0] > lastType { // no type of a record: TLS ends the connection here, perhaps because the peer speaks HTTP
				return true
			}
			inDebt := a.inDebt(now)
			a.bodyLen = int(a.head[3])<<8 | int(a.head[4])
			a.spend(recordPrice+a.bodyLen/bytesPerUnit, now)
			if inDebt || !a.heard && a.head[0] != applicationData && a.inDebt(now) {
				return false
			}
		}
		n := min(a.bodyLen, len(p))
		a.bodyLen -= n
		p = p[n:]
		if a.bodyLen == 0 {
			a.headLen = 0
		}
	}
	return true
}

// spend takes out units.
func (a *allowance) spend(units int, now time.Time) {
	if a.full.Before(now) {
		a.full = now
	}
	a.full = a.full.Add(time.Duration(units) * allowanceUnit)
}

// inDebt reports whether the client has spent more than there was.
func (a *allowance) inDebt(now time.Time) bool {
	return a.full.After(now.Add(allowanceBurst * allowanceUnit))
}

// bring gives back what was paid too much for data: so many bytes, the last of their record or not.
func (a *allowance) bring(bytes int, last bool) {
	units := bytes / bytesPerUnit
	if last {
		units += recordPrice - dataPrice
	}
	a.full = a.full.Add(-time.Duration(units) * allowanceUnit)
	a.heard = true
}

// renew makes the allowance full: a request was answered, which is paid for by itself.
func (a *allowance) renew() { a.full = time.Time{} }
