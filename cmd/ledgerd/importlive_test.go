package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"ledgerd/cmd/ledgerd/internal/testnode"
	"ledgerd/engine"
	"ledgerd/engine/datadir"
	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/source"
)

// archiveOfNode writes an archive of a test node's ledger at a block.
func archiveOfNode(t *testing.T, l *testnode.Ledger, at *ledger.Block) string {
	t.Helper()
	a := &agavetest.Archive{Slot: uint64(at.Slot), Parent: uint64(at.ParentSlot), Blockhash: at.Blockhash, Height: at.Height.Value}
	s := agavetest.Storage{Slot: a.Slot, ID: 1}
	for _, w := range l.StateAt(at.Slot).Accounts {
		record := agavetest.Record{Pubkey: w.Pubkey, Lamports: uint64(w.Lamports), Owner: w.Owner, RentEpoch: w.RentEpoch}
		if w.Executable {
			record.Executable = 1
		}
		switch {
		case w.Mint != nil:
			record.Data = agavetest.MintData(w.Mint)
		case w.Token != nil:
			record.Data = agavetest.TokenData(w.Token)
		}
		a.Capitalization += record.Lamports
		s.Records = append(s.Records, record)
	}
	a.Storages = []agavetest.Storage{s}
	path, err := a.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A node that imports an archive goes on from its slot with a live node, over its stream or over JSON-RPC,
// and holds in the end what the live node does.
func TestImportedNodeFollowsALiveOne(t *testing.T) {
	t.Parallel()
	l, err := testnode.Simulated("seed=3,accounts=150,tps=20,slot_time=0,slots=40", testnode.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	blocks := l.Main()
	at, last := blocks[len(blocks)/4], blocks[len(blocks)-1]
	archive := archiveOfNode(t, l, at)
	for name, spec := range map[string]func(n *testnode.Node) string{
		"stream":   func(n *testnode.Node) string { return "geyser:" + n.StreamURL() + "?data=full" },
		"JSON-RPC": func(n *testnode.Node) string { return "rpc:" + n.CallsURL() },
	} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, l, testnode.Config{})
			defer n.Close()
			n.Advance(20)
			path := filepath.Join(t.TempDir(), "data")
			if _, errors, code := tool(t, "import", "--archive", archive, "--data-dir", path); code != exitOK {
				t.Fatalf("import: exit %d, %s", code, errors)
			}
			dir, err := datadir.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			follows, err := source.Open(spec(n), quietLog())
			if err != nil {
				t.Fatal(err)
			}
			if err := dir.BindSource(follows.Info()); err != nil {
				t.Fatal(err)
			}
			e := engine.New(engine.Config{Dir: dir, Source: follows, Shards: 2, Logger: quietLog()})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			played := make(chan struct{})
			go func() { defer close(played); n.Run(ctx, 50*time.Millisecond) }()
			holds := func() bool {
				h := e.Head()
				return h != nil && h.Tips[ledger.Processed].Hash == last.Blockhash && h.StateHash == l.StateHash(last.Slot)
			}
			for deadline := time.Now().Add(60 * time.Second); !holds() && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			}
			if !holds() {
				t.Errorf("stands at %+v, want slot %d and state hash %s; %+v", e.Head(), last.Slot, l.StateHash(last.Slot), e.Status())
			} else if root := e.Head().Root; root != blocks[len(blocks)/4+1].Slot {
				t.Errorf("the first block held is at slot %d, want %d, the one after the archive", root, blocks[len(blocks)/4+1].Slot)
			}
			cancel()
			<-played
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}
