package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
	"ledgerd/engine/ledger"
)

const (
	// dataPatience is the longest that a server may take to read, write or recover a ledger.
	dataPatience = 15 * time.Minute
	// fileBufferBytes is how much of a ledger is written at once.
	fileBufferBytes = 1 << 20
	// dataFinality is how deep blocks are finalized where the ledger is only to be kept: a
	// snapshot is of a finalized block.
	dataFinality = 1
	// dataBlocks are so many, without updates, that one of them is finalized.
	dataBlocks = 2
	// snapshotSoon has a server take a snapshot as soon as there is something to take one of.
	snapshotSoon = "1s"
)

const (
	processedSlot = `ledgerd_slot{commitment="processed"}`
	finalizedSlot = `ledgerd_slot{commitment="finalized"}`
)

// writeFile writes a file whole and to the disk, so that nobody pays later for its being
// written.
func writeFile(path string, write func(w io.Writer) error) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriterSize(file, fileBufferBytes)
	if err := errors.Join(write(buffered), buffered.Flush()); err != nil {
		return fmt.Errorf("cannot write a ledger to %s: %w", path, err)
	}
	return file.Sync()
}

// writeLedger writes a ledger of so many blocks behind the first as an event file, and returns
// the newest slot.
func writeLedger(path string, c feed.Config, blocks int) (newest ledger.Slot, err error) {
	return newest, writeFile(path, func(w io.Writer) error {
		f, err := feed.New(w, c)
		for i := 0; i < blocks && err == nil; i++ {
			_, err = f.Block()
		}
		if err == nil {
			newest = f.Newest()
		}
		return err
	})
}

// reading is a server that reads a ledger from a file.
type reading struct {
	*proc.Server
	began time.Time // when it was started
}

// startReading starts a server that has a block synced before anybody sees it.
func startReading(ctx context.Context, env *Env, dataDir, path string, args ...string) (*reading, error) {
	began := time.Now()
	args = append([]string{"--source", "file:" + path, "--wal-sync", "always"}, args...)
	s, err := proc.Start(ctx, env.Ledgerd, args, proc.Options{Dir: env.Dir, DataDir: dataDir})
	if err != nil {
		return nil, err
	}
	return &reading{s, began}, nil
}

// sighting is what a server said of itself, and when it was asked and had answered.
type sighting struct {
	asked, told time.Time
	metrics     map[string]float64
}

// await asks the server for its metrics, time and again, until they are as wanted.
func (r *reading) await(ctx context.Context, every time.Duration, wanted func(metrics map[string]float64) bool) (s sighting, err error) {
	late := time.Now().Add(dataPatience)
	for {
		s.asked = time.Now()
		s.metrics, err = r.Metrics()
		if s.told = time.Now(); err == nil && wanted(s.metrics) {
			return s, nil
		}
		select {
		case <-r.Gone():
			return s, fmt.Errorf("ledgerd ended before it had read its ledger; it said: %s", r.Said())
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(every):
		}
		if s.told.After(late) {
			return s, fmt.Errorf("ledgerd has not read its ledger after %v (%w)", dataPatience, err)
		}
	}
}

// keep starts a server on a data directory and waits until it has read the ledger of the
// file, whose finality is dataFinality, and has a snapshot of it.
func keep(ctx context.Context, env *Env, dataDir, path string, newest ledger.Slot, args ...string) (*reading, error) {
	r, err := startReading(ctx, env, dataDir, path, append([]string{"--snapshot-interval", snapshotSoon}, args...)...)
	if err != nil {
		return nil, err
	}
	_, err = r.await(ctx, 20*time.Millisecond, func(m map[string]float64) bool {
		return m[processedSlot] == float64(newest) && m[finalizedSlot] >= float64(newest-dataFinality) && m["ledgerd_snapshot_slot"] == m[finalizedSlot]
	})
	if err != nil {
		r.Kill()
		return nil, err
	}
	return r, nil
}

// restart starts a server on what a data directory holds, and returns when it gives the right
// answer about an account, and how long that took from the start of the process.
func restart(ctx context.Context, env *Env, dataDir string, want ledger.AccountWrite, args ...string) (s *proc.Server, took time.Duration, err error) {
	began := time.Now()
	s, err = proc.Start(ctx, env.Ledgerd, append([]string{"--source", "none"}, args...), proc.Options{Dir: env.Dir, DataDir: dataDir})
	if err != nil {
		return nil, 0, err
	}
	if err = answers(ctx, s, want); err != nil {
		s.Kill()
		return nil, 0, err
	}
	return s, time.Since(began), nil
}

// answers waits until the server tells of an account. A wrong answer is an error.
func answers(ctx context.Context, s *proc.Server, want ledger.AccountWrite) error {
	ctx, cancel := context.WithTimeout(ctx, dataPatience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	url := s.URL() + "/account/" + want.Pubkey.String()
	for {
		status, body, err := proc.Get(ctx, client, url)
		switch {
		case err == nil && status == http.StatusOK:
			return isAccount(body, want)
		case err == nil && status != http.StatusServiceUnavailable:
			return fmt.Errorf("asked for an account, ledgerd answered %d: %s", status, body)
		}
		select {
		case <-s.Gone():
			return fmt.Errorf("ledgerd ended before it answered; it said: %s", s.Said())
		case <-ctx.Done():
			return fmt.Errorf("ledgerd does not answer: %w", errors.Join(ctx.Err(), err))
		case <-time.After(time.Millisecond):
		}
	}
}

// isAccount checks an answer about an account.
func isAccount(body []byte, want ledger.AccountWrite) error {
	var got struct {
		Pubkey, Owner string
		Lamports      ledger.Lamports
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return fmt.Errorf("not an account: %w: %s", err, body)
	}
	if got.Pubkey != want.Pubkey.String() || got.Owner != want.Owner.String() || got.Lamports != want.Lamports {
		return fmt.Errorf("account %s is to have %d lamports and be owned by %s, but the answer is %s", want.Pubkey, want.Lamports, want.Owner, body)
	}
	return nil
}

// dataDir makes a directory for a scenario's files, and returns what removes it.
func dataDir(env *Env, name string) (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(env.Dir, name+"-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// measured reports whether there is anything in a subject's row.
func (r *Result) measured(subject string) bool {
	for i := range r.Rows {
		if r.Rows[i].Subject == subject {
			return len(r.Rows[i].Figures) > 0
		}
	}
	return false
}
