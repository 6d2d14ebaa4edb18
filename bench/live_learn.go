package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/wsclient"
	"ledgerd/engine/ledger"
)

// What is asked of a server to find out what can be asked of it: a few dozen requests at most.
const (
	liveKeys     = 100_000 // accounts that are enough
	liveFew      = 1000    // accounts with which it is worth listening for more
	livePage     = 10_000  // accounts of a list, the most there is
	livePages    = 10      // of one program
	livePrograms = 16      // that are tried
	liveBatch    = 100     // accounts asked for at once, the most there is
	liveBatches  = 10      // such requests
	liveRecent   = 1000    // transactions, the most there is
	liveListens  = 3 * time.Second
)

// wellKnown are programs that own accounts on every ledger of the kind.
var wellKnown = []string{
	ledger.TokenProgram.String(), ledger.Token2022Program.String(), "11111111111111111111111111111111",
	"Vote111111111111111111111111111111111111111", "Stake11111111111111111111111111111111111111",
}

// known is what was found out about the ledger of a server.
type known struct {
	keys       []string
	programs   []knownProgram // the one with the most accounts first
	signatures []string       // of transactions, the newest first
	requests   int            // it took
	limit      int            // requests that a client has in a window; 0: any number
	left       int            // of those
}

// knownProgram is a program that owns accounts.
type knownProgram struct {
	id       string
	accounts int // at least
}

// learner finds out what a server can be asked.
type learner struct {
	*Live
	known
	seen map[string]bool // keys and programs
}

// learn finds accounts, programs and transactions: those that the newest transactions name and
// who owns them, those of well-known programs, and where that is little, those that change while it
// listens. It asks once: every client has a right to so many requests.
func (l *Live) learn(ctx context.Context) (*known, error) {
	if l.found != nil {
		return l.found, nil
	}
	s := &learner{Live: l, seen: make(map[string]bool)}
	owners, err := s.recent(ctx)
	if err == nil {
		err = s.lists(ctx, append(owners, wellKnown...))
	}
	if err == nil && len(s.keys) < liveFew {
		if owners, err = s.listen(ctx); err == nil {
			err = s.lists(ctx, owners)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot learn which accounts there are: %w", err)
	}
	if len(s.keys) == 0 {
		return nil, errors.New("the server tells of no account: no transaction names one, no known program owns one, and none changes")
	}
	// Who is asked for often is not to depend on the order of keys.
	random := rand.New(rand.NewPCG(1, 1))
	random.Shuffle(len(s.keys), func(i, k int) { s.keys[i], s.keys[k] = s.keys[k], s.keys[i] })
	slices.SortStableFunc(s.programs, func(a, b knownProgram) int { return b.accounts - a.accounts })
	l.found = &s.known
	return l.found, nil
}

// ask asks for a path. What is not there leaves the record as it is.
func (s *learner) ask(ctx context.Context, path string, record any) error {
	status, head, err := s.get(ctx, path, record)
	if err != nil {
		return err
	}
	s.requests++
	switch status {
	case http.StatusOK, http.StatusNotFound:
	case statusLimited:
		return &limitedError{s.requests - 1, 1}
	default:
		return fmt.Errorf("GET %s is answered %d", path, status)
	}
	s.limit, _ = strconv.Atoi(head.Get("X-RateLimit-Limit"))
	s.left, _ = strconv.Atoi(head.Get("X-RateLimit-Remaining"))
	return nil
}

func (s *learner) addKey(key string) {
	if !s.seen[key] && len(s.keys) < liveKeys {
		s.seen[key] = true
		s.keys = append(s.keys, key)
	}
}

// recent learns of the newest transactions, and who owns what they name.
func (s *learner) recent(ctx context.Context) (owners []string, err error) {
	var page struct {
		Transactions []struct {
			Signature string
			Accounts  []string
		}
	}
	if err := s.ask(ctx, fmt.Sprintf("/transactions/recent?limit=%d", liveRecent), &page); err != nil {
		return nil, err
	}
	var named []string
	seen := make(map[string]bool)
	for _, t := range page.Transactions {
		s.signatures = append(s.signatures, t.Signature)
		for _, key := range t.Accounts {
			if !seen[key] {
				seen[key] = true
				named = append(named, key)
			}
		}
	}
	for batch := range slices.Chunk(named[:min(len(named), liveBatch*liveBatches)], liveBatch) {
		var found struct {
			Accounts []*struct{ Pubkey, Owner string }
		}
		if err := s.ask(ctx, "/accounts?keys="+strings.Join(batch, ","), &found); err != nil {
			return nil, err
		}
		for _, a := range found.Accounts {
			if a != nil {
				s.addKey(a.Pubkey)
				owners = append(owners, a.Owner)
			}
		}
	}
	return owners, nil
}

// lists learns of the accounts of programs.
func (s *learner) lists(ctx context.Context, programs []string) error {
	for _, id := range programs {
		if id == "" || s.seen["program "+id] || len(s.programs) >= livePrograms {
			continue
		}
		s.seen["program "+id] = true
		p := knownProgram{id: id}
		cursor := ""
		for range livePages {
			var page struct {
				Accounts   []struct{ Pubkey string }
				NextCursor *string `json:"next_cursor"`
			}
			if err := s.ask(ctx, fmt.Sprintf("/accounts/program/%s?limit=%d%s", id, livePage, cursor), &page); err != nil {
				return err
			}
			for _, a := range page.Accounts {
				s.addKey(a.Pubkey)
			}
			p.accounts += len(page.Accounts)
			if page.NextCursor == nil || len(s.keys) >= liveKeys {
				break
			}
			cursor = "&cursor=" + *page.NextCursor
		}
		if p.accounts > 0 {
			s.programs = append(s.programs, p)
		}
	}
	return nil
}

// listen learns of the accounts that change, and who owns them.
func (s *learner) listen(ctx context.Context) (owners []string, err error) {
	conn, err := wsclient.Dial(ctx, s.StreamURL()+"?extended=true", wsclient.Options{})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.NetConn().SetReadDeadline(time.Now().Add(liveListens)) // a socket without one fails
	var state wsclient.State
	for len(state.Accounts) < liveKeys {
		frame, err := conn.Next()
		if err != nil {
			break // there was no more in the time
		}
		if err := state.Apply(frame.Payload); err != nil {
			return nil, err
		}
	}
	for key, update := range state.Accounts {
		s.addKey(key)
		owners = append(owners, update.Owner)
	}
	return owners, ctx.Err()
}
