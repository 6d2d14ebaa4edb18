package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger/ledgertest"
	clientlib "ledgerd/httpd/client"
)

// What a client is told adds up to what REST answers, whatever happened meanwhile. In these tests blocks are undone all the time, and streams
// of the client libraries at every level, of everything and of the accounts of programs, are compared with REST when the ledger has ended.

// accounts returns all accounts of a level and the slot they are of, which is one if the ledger
// stands still.
func (v *victim) accounts(level string, still bool) (all map[string]accountState, slot string) {
	v.Helper()
	all = map[string]accountState{}
	for _, program := range simPrograms {
		a := v.get("/accounts/program/" + program + "?limit=10000&include=data&commitment=" + level)
		if a.status == http.StatusNotFound {
			continue // there are no pools
		}
		var list struct {
			Accounts   []accountState
			NextCursor *string `json:"next_cursor"`
		}
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.status != http.StatusOK || list.NextCursor != nil {
			v.Fatalf("accounts of %s: %d %.300s", program, a.status, a.body)
		}
		if here := a.header.Get("X-Ledger-Slot"); still && slot != "" && here != slot {
			v.Fatalf("the ledger has ended, and lists are of slots %s and %s", slot, here)
		}
		slot = a.header.Get("X-Ledger-Slot")
		for _, account := range list.Accounts {
			if before, twice := all[account.Pubkey]; still && twice {
				v.Fatalf("%+v is also listed as %+v", account, before)
			}
			all[account.Pubkey] = account
		}
	}
	return all, slot
}

// agrees waits until streams add up to what a node answers at the end of its ledger. Those that catch up with all of it share two processors
// with whatever else is tested, and take minutes then.
func (v *victim) agrees(state func() []foldedStream) {
	v.Helper()
	all := map[string]map[string]accountState{}
	for _, level := range levels {
		all[level], _ = v.accounts(level, true)
	}
	var folds []foldedStream
	var differs error
	defer func() {
		if v.Failed() {
			v.Log(differs)
		}
	}()
	v.untilWithin(3*patience, "the streams are what REST answers", func() bool {
		folds, differs = state(), nil
		for i := range folds {
			_, level, _ := strings.Cut(folds[i].Name, ", ")
			if err := folds[i].differs(all[level]); err != nil {
				differs = errors.Join(differs, fmt.Errorf("%s, %d starts: %w", folds[i].Name, folds[i].Starts, err))
			}
		}
		return differs == nil
	})
	for _, f := range folds {
		v.Logf("%s: %d starts, %d accounts", f.Name, f.Starts, len(f.Accounts))
		ledgertest.Equal(v, f.Wrong, "", "%s: what is wrong", f.Name)
	}
}

func streamURL(base string) string { return "ws" + strings.TrimPrefix(base, "http") + "/ws/accounts" }

// standsAt returns where a node is at a level.
func standsAt(t testing.TB, base, level string) (here place) {
	t.Helper()
	c, err := clientlib.New(base, clientlib.Options{})
	must(t, err)
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	err = c.Stream(ctx, clientlib.Subscription{Commitment: clientlib.Commitment(level)}, clientlib.Handler{Start: func(at clientlib.Start) {
		here = place{at.Slot, at.Seq}
		stop()
	}})
	ledgertest.ErrorIs(t, err, context.Canceled, "where a node stands")
	return here
}

// follower has a client library follow a node. What it returns tells what the streams add up to.
type follower func(t *testing.T, address string, folds []*clientFold) (state func() []foldedStream)

var followers = map[string]follower{"Go": followGo, "JavaScript": followJavaScript, "Python": followPython}

// F1: connections are cut at random bytes while blocks are undone and the node is killed and stopped. No number is told twice and none never.
func TestClientsFollowThroughCutsAndKills(t *testing.T) {
	t.Parallel()
	for name, follow := range followers {
		if testing.Short() && name != "Go" {
			continue // it is a program of its own, which the race detector does not see
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random, seed := seededRand(t)
			cuts := repetitions(t, "LEDGERD_CLIENT_CUTS", 16)
			// The ledger ends nowhere before the cuts are made: on a busy machine that takes as many slots as it likes.
			source := fmt.Sprintf("sim:seed=%d,skip_rate=0.1,finality=8,fork_rate=0.2,accounts=300,pools=2,tps=160,slot_time=40ms", seed)
			dir := t.TempDir()
			var node *victim
			var to atomic.Pointer[string]
			start := func() {
				node = launch(t, "--data-dir", dir, "--source", source, "--data", "all", "--snapshot-interval", "0s", "--rate-limit-exempt", "127.0.0.0/8").ready()
				host := hostOf(node.base)
				to.Store(&host)
			}
			start()
			c := newCutter(t, random, cuts, 8, func() string { return *to.Load() })
			folds := foldsOf()
			// More names than a message holds: those of 80 accounts, and between them some that nobody has.
			base, _ := node.accounts("processed", false)
			keys := slices.Sorted(maps.Keys(base))[:80]
			for i := range 3000 - len(keys) {
				keys = append(keys, toolKey(fmt.Sprint(i)).String())
			}
			random.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
			for _, level := range levels[:2] {
				folds = append(folds, newFold("keys", clientlib.Subscription{Pubkeys: keys, Commitment: clientlib.Commitment(level)}))
			}
			grown := newFold("keys that are added", clientlib.Subscription{Pubkeys: keys[:10], Commitment: clientlib.Processed, More: new(clientlib.More)})
			// Pools, of which no lamports move: the data of 160 bytes alone changes, and ends in zeros.
			where := &clientlib.DataFilter{Size: new(uint64(160)), Parts: []clientlib.DataPart{{Offset: 154, Bytes: "111111"}}}
			pools := newFold("pools", clientlib.Subscription{Programs: []string{poolProgram}, Data: true, Where: where, Commitment: clientlib.Processed})
			if grown.pubkeys = keys; name == "Go" {
				folds = append(folds, grown, pools)
			}
			state := follow(t, c.address(), folds)
			for kill := range 3 {
				grown.sub.More.Add(keys[10+kill*900:10+(kill+1)*900], nil, nil)
				node.until("some cuts are made", func() bool { return c.isThrough() || c.cuts.Load() > int64((kill+1)*cuts/8) })
				if kill == 1 {
					node.stop()
				} else {
					node.Kill()
				}
				start()
			}
			grown.sub.More.Add(keys[2710:], nil, nil)
			node.until("the cuts are made", c.isThrough)
			node.until("all streams have begun", func() bool {
				return !slices.ContainsFunc(state(), func(f foldedStream) bool { return f.Starts == 0 })
			})
			source += fmt.Sprintf(",slots=%d", newestSlot(node)+100)
			node.stop()
			start()
			node.ending()
			node.agrees(state)
			undone := 0
			for _, f := range folds {
				undone += f.undone
			}
			if name == "Go" && (undone == 0 || len(pools.Accounts) != 2) {
				t.Errorf("%d rollbacks and %d pools were told of", undone, len(pools.Accounts))
			}
			t.Logf("%d connections cut", c.cuts.Load())
		})
	}
}

// A client that was cut off between the last update of a block and its end is told that end, also by a node that has begun anew from its
// snapshot meanwhile.
func TestTheEndOfABlockIsToldAfterARestart(t *testing.T) {
	t.Parallel()
	args := []string{"--data-dir", t.TempDir(), "--source", "sim:accounts=300,slot_time=0,slots=60", "--snapshot-interval", "0s", "--log-level", "info"}
	node := launch(t, args...).ready()
	node.ending()
	node.stop()
	node = launch(t, args...).ready()
	for _, level := range levels {
		end := standsAt(t, node.base, level)
		c, err := clientlib.New(node.base, clientlib.Options{})
		must(t, err)
		ctx, stop := context.WithTimeout(t.Context(), patience)
		var told place
		_ = c.Stream(ctx, clientlib.Subscription{After: &end.seq, Commitment: clientlib.Commitment(level)}, clientlib.Handler{SlotEnd: func(slot, seq uint64) {
			told = place{slot, seq}
			stop()
		}})
		stop()
		ledgertest.Equal(t, told, end, "%s: the end of a block that is told", level)
	}
}

// The names of a stream are said in parts, the snapshots of which follow each other. It resumes from the number that the last of them is as of:
// whatever a part holds is not told again. Where it begins anew, it says all of them again. A gap that conflation leaves is told.
func TestNamesAreSaidInParts(t *testing.T) {
	keys := slices.Repeat([]string{strings.Repeat("z", 44)}, 3000)
	want := map[string]string{"a": "34 o", "b": "35 o", "c": "31 o", "d": "32 o", "e": "33 o", "f": "33 o"}
	for name, follow := range followers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			saysNames(t, "testdata/names.txt", follow, clientlib.Subscription{Pubkeys: keys, Commitment: clientlib.Processed}, 1, want)
		})
	}
}

// A stream that is cut while names that were added are listed begins anew: of those that were listed some may be gone when they are listed again.
func TestNamesThatWereListedInPartAreListedAnew(t *testing.T) {
	more := new(clientlib.More)
	more.Add([]string{"b", "c"}, nil, nil)
	sub := clientlib.Subscription{Pubkeys: []string{"a"}, Commitment: clientlib.Processed, More: more}
	saysNames(t, "testdata/added.txt", followGo, sub, 0, map[string]string{"a": "20 o", "c": "20 o"})
}

// saysNames has a client follow what holds the conversations of a file, one a connection, until it has begun twice and adds up to what is wanted.
func saysNames(t *testing.T, file string, follow follower, sub clientlib.Subscription, gaps int, want map[string]string) {
	t.Helper()
	// Frames are markers, and updates of accounts, with the numbers that they are as of.
	frame := func(text string) string {
		switch kind, seq, _ := strings.Cut(text, " "); {
		case len(kind) == 1:
			const update = `{"type":"account_update","pubkey":"%s","lamports":%s,"slot":1,"seq":%[2]s,"owner":"o","timestamp":"%s"}`
			return fmt.Sprintf(update, kind, seq, "2026-01-01T00:00:00Z")
		case kind == "gap":
			return fmt.Sprintf(`{"type":"gap","from_seq":34,"to_seq":%s}`, seq)
		case strings.HasPrefix(kind, "re"):
			return fmt.Sprintf(`{"type":"%s","id":2,"from_seq":%s,"oldest_seq":%[2]s,"newest_seq":%[2]s}`, kind, seq)
		default:
			return fmt.Sprintf(`{"type":"%s","id":1,"slot":1,"seq":%s}`, kind, seq)
		}
	}
	all := strings.Split(string(readFile(t, file)), "--\n")
	conversations := make(chan []turn, len(all))
	for _, text := range all {
		conversations <- conversation(text, frame)
	}
	close(conversations)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := <-conversations
		if err := converse(w, r, now, len(conversations) == 0); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(node.Close)
	state := follow(t, node.URL, []*clientFold{newFold("keys", sub)})
	for late := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		f := state()[0]
		if f.Starts == 2 && f.Gaps == gaps && f.Wrong == "" && maps.Equal(f.Accounts, want) {
			return
		}
		if t.Failed() || f.Wrong != "" || f.Starts > 2 || time.Now().After(late) {
			t.Fatalf("%d starts, %d gaps, %s: %v", f.Starts, f.Gaps, f.Wrong, f.Accounts)
		}
	}
}

// As many names as a node takes are subscribed, of the kind that costs most. A client in debt afterwards waits until that is paid. One name more
// is refused.
func TestAsManyNamesAsANodeTakesAreFollowed(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector each of the lists is long work, which gives way to all other tests")
	}
	t.Parallel()
	node := launch(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=300,slot_time=0,slots=60", "--snapshot-interval", "0s", "--log-level", "info").ready()
	node.ending()
	c, err := clientlib.New(node.base, clientlib.Options{})
	must(t, err)
	var names []string
	for i := range 10_000 {
		names = append(names, toolKey(fmt.Sprint(i)).String())
	}
	names = append(names, simPrograms[0])
	ledgertest.ErrorSays(t, c.Stream(t.Context(), clientlib.Subscription{Programs: names}, clientlib.Handler{}), "at most 10000", "more names than a node takes")
	filtered := clientlib.Subscription{Wallets: names[:1], Where: new(clientlib.DataFilter)}
	ledgertest.ErrorSays(t, c.Stream(t.Context(), filtered, clientlib.Handler{}), "for accounts of programs", "a filter by data of a wallet")
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	follow := func(h clientlib.Handler) (wait time.Duration, why error) {
		ctx, stop := context.WithCancel(ctx)
		h.Ready = stop
		h.Disconnected = func(lost error, pause time.Duration) { why, wait = lost, pause; stop() }
		_ = c.Stream(ctx, clientlib.Subscription{Wallets: names[:1], Programs: names[2:]}, h)
		return wait, why
	}
	began, members := 0, 0
	_, why := follow(clientlib.Handler{Start: func(clientlib.Start) { began++ }, Update: func(clientlib.Update) { members++ }})
	if why != nil || began != 1 || members == 0 || ctx.Err() != nil {
		t.Errorf("it was begun %d times, told %d members, and ready: %v; %v", began, members, ctx.Err() == nil, why)
	}
	waits := make(chan time.Duration, 18) // of so many at once, that no machine is slow enough for their budget
	var crowd sync.WaitGroup
	for range cap(waits) {
		crowd.Go(func() {
			wait, why := follow(clientlib.Handler{})
			end := new(websocket.CloseError)
			if errors.As(why, &end) && end.Code == websocket.ClosePolicyViolation {
				waits <- wait
				stop() // the others need not go on
			} else if why != nil && ctx.Err() == nil {
				t.Error(why)
			}
		})
	}
	crowd.Wait()
	if len(waits) == 0 || <-waits < 20*time.Second {
		t.Error("the budget is never used up, or the wait after that is too short")
	}
}
