package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ledgerd/cmd/ledgerd/internal/testnode"
	"ledgerd/engine"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/source/file"
	"ledgerd/engine/source/geyser"
	"ledgerd/engine/source/rpc"
)

const recordedStream = "streams/mainnet-398202772-398202821.geyser.bin.gz"

// listening is a source whose events are kept.
type listening struct {
	engine.Source
	events chan ledger.Event
}

func (s listening) Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error {
	return s.Source.Run(ctx, from, func(ctx context.Context, e ledger.Event) error {
		s.events <- e
		return emit(ctx, e)
	})
}

// followOverSockets has an engine follow a node over real sockets until stop says so, and returns what the source
// emitted and the engine, which still serves.
func followOverSockets(t *testing.T, n *testnode.Node, source engine.Source, stop func(e *engine.Engine) bool) ([]ledger.Event, *engine.Engine) {
	t.Helper()
	s := listening{source, make(chan ledger.Event, 100_000)}
	published := make(chan struct{}, 1)
	e := engine.New(engine.Config{Source: s, Shards: 2, Logger: quiet(), OnPublish: func(*ledger.Publication) {
		select {
		case published <- struct{}{}:
		default:
		}
	}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the engine ended: %v", err)
		}
	})
	given := time.After(time.Minute)
	for !stop(e) {
		select {
		case <-published:
		case err := <-ended:
			ended <- err
			t.Fatalf("the engine ended: %v", err)
		case <-given:
			t.Fatalf("nothing more comes: %q, %+v", e.Status().Unhealthy, n.Tally())
		}
	}
	var events []ledger.Event
	for len(s.events) > 0 {
		events = append(events, <-s.events)
	}
	return events, e
}

// TestTheRecordedStreamGivesTheRecordedChainOverASocket plays the recorded stream of a validator through a socket.
func TestTheRecordedStreamGivesTheRecordedChainOverASocket(t *testing.T) {
	t.Parallel()
	l, err := testnode.RecordedStream(bytes.NewReader(datatest.Read(t, datatest.Path(t, recordedStream))))
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, l, testnode.Config{Token: "secret"})
	defer n.Close()
	main := l.Main()
	last := ledger.Slot(0)
	for _, s := range l.ToldStatuses() {
		if s.Status == ledger.StatusConfirmed && s.Slot <= main[len(main)-1].Slot {
			last = max(last, s.Slot)
		}
	}
	source := geyser.New(geyser.Config{Address: strings.TrimPrefix(n.StreamURL(), "http://"), Token: "secret", NoTransactions: true, Logger: quiet()})
	// All of it is there at once, from the first slot on.
	begun := false
	events, _ := followOverSockets(t, n, source, func(e *engine.Engine) bool {
		for !begun {
			if begun = n.Tally().Subscriptions > 0; begun {
				n.Advance(l.Slots)
			}
		}
		h := e.Head()
		return h != nil && h.HasBlock && h.Tip(ledger.Confirmed).Slot >= last
	})
	var blocks []*ledger.Block
	var statuses []string
	for _, e := range events {
		switch e := e.(type) {
		case *ledger.Block:
			blocks = append(blocks, e)
		case *ledger.SlotStatus:
			if len(blocks) > 0 && e.Slot > blocks[0].Slot {
				statuses = append(statuses, fmt.Sprintf("%d %s", e.Slot, e.Status))
			}
		}
	}
	if len(blocks) == 0 {
		t.Fatal("no block came")
	}
	first := 0
	for main[first].Slot < blocks[0].Slot {
		first++
	}
	if want := main[first:]; first > 2 || len(blocks) < len(want)-1 {
		t.Fatalf("%d blocks came, from slot %d; recorded are %d from slot %d", len(blocks), blocks[0].Slot, len(want), want[0].Slot)
	}
	for i, got := range blocks {
		want := main[first+i]
		if got.Slot != want.Slot || got.Blockhash != want.Blockhash || got.ParentSlot != want.ParentSlot || got.PreviousBlockhash != want.PreviousBlockhash ||
			got.Time != want.Time || got.Height != want.Height || got.TransactionCount != want.TransactionCount {
			t.Errorf("block %d came as %+v, want %+v", i, got, want)
		}
	}
	var told []string
	for _, s := range l.ToldStatuses() {
		if s.Slot > blocks[0].Slot && s.Status != ledger.StatusDead {
			told = append(told, fmt.Sprintf("%d %s", s.Slot, s.Status))
		}
	}
	if n := len(statuses); n < 40 || n > len(told) || !reflect.DeepEqual(statuses, told[:n]) {
		t.Errorf("slots came to\n%v\nrecorded is\n%v", statuses, told)
	}
}

// recordedAnswers returns the getBlock answers of files in order.
func recordedAnswers(t *testing.T, names ...string) (answers []testnode.RecordedBlock) {
	t.Helper()
	for _, name := range names {
		path := datatest.Path(t, "blocks/"+name)
		var raw json.RawMessage
		datatest.JSON(t, path, &raw)
		var all []json.RawMessage
		if json.Unmarshal(raw, &all) != nil {
			all = []json.RawMessage{raw}
		}
		for _, one := range all {
			var head struct{ Slot *ledger.Slot }
			if err := json.Unmarshal(one, &head); err != nil {
				t.Fatal(err)
			}
			if head.Slot == nil { // the name tells it
				var slot ledger.Slot
				if _, err := fmt.Sscanf(name[strings.LastIndex(name, "-")+1:], "%d", &slot); err != nil {
					t.Fatal(err)
				}
				head.Slot = &slot
			}
			answers = append(answers, testnode.RecordedBlock{Slot: *head.Slot, Answer: one})
		}
	}
	return answers
}

// readByFile returns the blocks of recorded answers as source file reads them, which is held against other readers'
// answers in its own tests.
func readByFile(t *testing.T, answers []testnode.RecordedBlock) (blocks []*ledger.Block) {
	t.Helper()
	var paths []string
	dir := t.TempDir()
	for _, a := range answers {
		path := filepath.Join(dir, fmt.Sprintf("%d.json", a.Slot))
		if err := os.WriteFile(path, a.Answer, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	s, err := file.Open(strings.Join(paths, ","), quiet())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Run(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
		if b, ok := e.(*ledger.Block); ok {
			blocks = append(blocks, b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// ownersOf returns base state in which every account that blocks touch has an owner: its balance at the end, a token
// program for what holds tokens, else the system program.
func ownersOf(blocks []*ledger.Block) *ledger.BaseState {
	base := &ledger.BaseState{}
	state := make(map[ledger.Pubkey]*ledger.Account)
	for _, b := range blocks {
		for i := range b.Accounts {
			w := &b.Accounts[i]
			state[w.Pubkey] = ledger.Merge(state[w.Pubkey], w, ledger.BlockProvenance(b.Slot))
		}
	}
	for _, a := range state {
		if a == nil || !a.Exists() {
			continue
		}
		w := ledger.AccountWrite{Pubkey: a.Pubkey, Lamports: a.Lamports, Owner: ledger.SystemProgram, RentEpoch: 7, Known: ledger.FieldsAll}
		if a.Token != nil {
			token := *a.Token
			token.Details = ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})
			w.Owner, w.Token = ledger.TokenProgram, &token
			if a.Known&ledger.FieldOwner != 0 {
				w.Owner = a.Owner
			}
		}
		base.Accounts = append(base.Accounts, w)
	}
	return base
}

// TestRecordedBlocksGiveTheirTransactionsOverASocket has a node answer what real nodes answered.
func TestRecordedBlocksGiveTheirTransactionsOverASocket(t *testing.T) {
	for name, files := range map[string][]string{
		"the first 20 slots":         {"mainnet-0-9.blocks.json", "mainnet-10-19.blocks.json"},
		"602 transactions of 2024":   {"mainnet-254170887.json.gz"},
		"a small network's":          {"devnet-314167369.json"},
		"a small network's, 57":      {"devnet-270893658.json"},
		"transactions as an excerpt": {"excerpt-mainnet-100000000.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := recordedAnswers(t, files...)
			want := readByFile(t, answers)
			if answers[0].Slot == 0 { // its own parent, which no node lists
				answers, want = answers[1:], want[1:]
			}
			checkRecordedBlocks(t, answers, want)
		})
	}
}

func checkRecordedBlocks(t *testing.T, answers []testnode.RecordedBlock, want []*ledger.Block) {
	t.Helper()
	base := ownersOf(want)
	l, err := testnode.RecordedBlocks(answers, base)
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, l, testnode.Config{})
	defer n.Close()
	n.Advance(l.Slots)
	u, err := url.Parse(n.CallsURL())
	if err != nil {
		t.Fatal(err)
	}
	last := want[len(want)-1]
	source := rpc.New(rpc.Config{URL: u, From: ledger.Some(want[0].Slot), Poll: 10 * time.Millisecond, FinalityPoll: 10 * time.Millisecond, Logger: quiet()})
	events, e := followOverSockets(t, n, source, func(e *engine.Engine) bool {
		h := e.Head()
		return h != nil && h.HasBlock && h.Tip(ledger.Finalized).Slot == last.Slot
	})
	var got []*ledger.Block
	for _, e := range events {
		if b, ok := e.(*ledger.Block); ok {
			got = append(got, b)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d blocks came, want %d", len(got), len(want))
	}
	for i, b := range want {
		g := got[i]
		if g.Slot != b.Slot || g.Blockhash != b.Blockhash || g.ParentSlot != b.ParentSlot || g.Time != b.Time || g.Height != b.Height {
			t.Errorf("block %d came as %d %s", b.Slot, g.Slot, g.Blockhash)
		}
		if !reflect.DeepEqual(g.Transactions, b.Transactions) {
			t.Errorf("block %d: its %d transactions came as %d others", b.Slot, len(b.Transactions), len(g.Transactions))
		}
		if b != last && !reflect.DeepEqual(g.Accounts, b.Accounts) || !reflect.DeepEqual(g.Accounts[:len(b.Accounts)], b.Accounts) {
			t.Errorf("block %d: its balances and token lists differ", b.Slot)
		}
	}
	for i := range base.Accounts {
		w := &base.Accounts[i]
		a, _, err := e.Accounts(ledger.Query{}, []ledger.Pubkey{w.Pubkey})
		if err != nil || len(a) != 1 || a[0].Owner != w.Owner || a[0].Unknown() != 0 || a[0].Lamports != w.Lamports || (a[0].Token == nil) != (w.Token == nil) {
			t.Fatalf("%s is %+v (%v), want %+v", w.Pubkey, a, err, w)
		}
	}
}
