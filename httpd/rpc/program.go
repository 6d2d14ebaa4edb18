package rpc

import (
	"errors"
	"slices"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
	"ledgerd/httpd"
)

const (
	programPage = 2000 // accounts of a program that are read at once
	// slowPage is how many are read at once while the client takes the answer, and slowPageBytes what they take then: it may take its time. One
	// account may take more.
	slowPage, slowPageBytes = 100, 1 << 20

	heldBytes = 512 // about what an account takes while it is held, without its data
)

var (
	errScan  = &callError{code: codeScan, message: "the accounts could not be looked through in time"}
	errSpent = &callError{code: fasthttp.StatusTooManyRequests, message: "too many requests: each 10 pages of a list count as one"}
)

// programAccounts answers the accounts of a program that its filters take, in the order of their keys.
func (c *call) programAccounts(dst []byte) ([]byte, error) {
	program, f, config := c.shown("programId", asBinary)
	withContext, _ := c.isSet(config, "withContext"), c.isSet(config, "sortResults") // they always are sorted
	takes := c.readSelection(member(config, "filters"))
	if c.wrong != nil {
		return dst, c.wrong
	}
	if withContext || takes.never {
		if _, err := c.newest(); err != nil {
			return dst, err
		}
	}
	if takes.looks {
		c.query.Where = &takes.data
	}
	s := c.scan(c.door.config.Ledger.Program, "accounts of program", program, &f)
	if s.whole = takes.never; takes.tokens {
		s.skips = func(a ledger.Account) bool { return a.Token == nil }
	}
	if withContext {
		return s.appendAll(append(c.appendContext(dst), '['), "]}")
	}
	return s.appendAll(append(dst, '['), "]")
}

// scan reads a list of accounts page by page from one version, and encodes those that a call takes, by the deadline of that.
type scan struct {
	*call
	*listing
	list    httpd.Lister
	what    string // are listed
	of      ledger.Pubkey
	skips   func(ledger.Account) bool // nil: none is
	page    int                       // how many are read at once
	pages   int                       // that were read
	room    []ledger.Account          // of the last page
	left    []ledger.Account          // of it, which are not encoded
	mints   mints                     // theirs, once they are looked up
	after   ledger.Opt[ledger.Pubkey]
	whole   bool // there are no more pages
	encoded int
}

// scan returns a scan of all accounts that are listed by a key. The call has httpd.ListTime from then on; what goes on after the answer has
// begun has a deadline a page.
func (c *call) scan(list httpd.Lister, what string, of ledger.Pubkey, f *form) *scan {
	c.query.Deadline = time.Now().Add(httpd.ListTime)
	return &scan{call: c, listing: c.listing(f, true), list: list, what: what, of: of, page: programPage}
}

// appendAll appends all accounts, and an end. Where there is no memory for them, the rest is read while the client takes the answer, if that can have
// chunks.
func (s *scan) appendAll(dst []byte, end string) ([]byte, error) {
	dst, err := s.append(dst)
	if !errors.Is(err, errNoRoom) {
		return append(dst, end...), err
	}
	if s.encoded == 0 || s.isBatch || !s.x.Context().Request.Header.IsHTTP11() { // which alone has chunks
		return dst, &callError{code: codeScan, message: "the accounts take more memory than this node gives an answer now: ask with filters or a dataSlice"}
	}
	s.continueIn(end)
	return dst, nil
}

// append appends the accounts that are left. After errNoRoom it goes on where it was.
func (s *scan) append(dst []byte) (_ []byte, err error) {
	for {
		if s.mints == nil {
			if s.mints, err = s.mintsFor(s.form, s.left); err != nil {
				return dst, err
			}
		}
		var n int
		dst, n, err = s.appendKnown(dst, s.listing, s.left, s.mints)
		s.left, s.encoded = s.left[n:], s.encoded+n
		if err != nil || s.whole {
			return dst, err
		}
		if err := s.read(); err != nil {
			return dst, err
		}
	}
}

// read reads the next page. There is none where nothing is known of whom.
func (s *scan) read() error {
	if s.fixed { // the client may have taken its time
		s.query.Deadline = time.Time{}
	}
	var v ledger.View
	var err error
	if s.pages++; !s.fixed && s.x.TakePage(s.pages) != nil {
		return errSpent
	}
	s.room, s.after, v, err = s.list(s.query, s.of, s.after, s.page, s.room)
	s.whole = !s.after.Known
	switch err = s.from(v, err); {
	case s.isLate():
		return errScan
	case err != nil && !errors.Is(err, ledger.ErrNotFound):
		return err
	case v.Lacks:
		return elsewhere(codeExcluded, "the %s %s are not all held here", s.what, s.of)
	case v.DataUnknown:
		return elsewhere(codeExcluded, "the data of the %s %s is not kept here: filters take --data", s.what, s.of)
	case err != nil:
		s.room, s.whole = nil, true
	}
	s.left, s.mints = s.room, nil
	if s.skips != nil {
		s.left = slices.DeleteFunc(s.room, s.skips)
	}
	if s.fixed {
		s.cut()
	}
	return nil
}

// cut leaves as many of the accounts that are left as a client may have held while it reads, which the budget is told. The others are read again.
func (s *scan) cut() {
	bytes := 0
	for n := range s.left {
		more := heldBytes + s.left[n].Data.Len()
		if n > 0 && (n == slowPage || bytes+more > slowPageBytes) {
			s.after, s.whole = ledger.Some(s.left[n-1].Pubkey), false
			clear(s.left[n:])
			s.left = s.left[:n]
			break
		}
		bytes += more
	}
	s.x.Keep(bytes)
}

// continueIn has the answer go on after the call, whose session it keeps: what has no room in memory is read as the client takes it. An error, as
// where the version is not held any more, ends the connection.
func (s *scan) continueIn(end string) {
	s.parser, s.params, s.query.Deadline = fastjson.Parser{}, nil, time.Time{} // the call is not read any more
	s.fixed, s.page = true, slowPage
	s.cut()
	s.room, s.left, s.mints = nil, slices.Clone(s.left), nil // the large page is let go of
	s.goesOn = func(dst []byte) ([]byte, bool, error) {
		dst, err := s.append(dst)
		switch {
		case errors.Is(err, errNoRoom) && len(dst) > 0:
			return dst, true, nil
		case err != nil:
			s.method.failed.Add(1)
			return dst, false, err
		}
		return s.appendID(append(dst, end...)), false, nil
	}
}
