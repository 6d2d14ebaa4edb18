package engine

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// recoveredAccounts is how many accounts recovery is measured with: LEDGERD_BENCH_ACCOUNTS or a
// million.
func recoveredAccounts(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("LEDGERD_BENCH_ACCOUNTS"))
	if err != nil {
		n = 1_000_000
	}
	return n
}

// benchAccount returns the i-th of n accounts, in pubkey order; every other one is a token
// account of a wallet of its own.
func benchAccount(i, n int) *ledger.Account {
	a := &ledger.Account{
		Pubkey: benchKey(i, n), Owner: ledger.SystemProgram, Lamports: ledger.Lamports(1_000_000 + i*7),
		RentEpoch: math.MaxUint64, Known: ledger.FieldsAll &^ ledger.FieldMint, Provenance: ledger.BlockProvenance(1000),
	}
	if i%2 == 1 {
		a.Owner = ledger.TokenProgram
		a.Token = &ledger.TokenAccount{
			Mint: key(i % 1000), Owner: benchKey(i*7919%n, n), Amount: uint64(i) * 1_000_003,
			Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized}),
		}
	}
	return a
}

func benchKey(i, n int) (k ledger.Pubkey) {
	k = sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))
	binary.BigEndian.PutUint64(k[:], math.MaxUint64/uint64(n)*uint64(i)+binary.BigEndian.Uint64(k[8:])%(math.MaxUint64/uint64(n)))
	return k
}

// writeBench leaves a data directory with n accounts in its snapshot, and returns how many bytes
// of keys and values they are.
func writeBench(b *testing.B, path string, n int) (payload int64) {
	b.Helper()
	writeAccounts(b, path, n, benchAccount)
	for i := range 1000 {
		payload += int64(len(codec.AppendAccount(nil, benchAccount(i, n))))
	}
	return payload * int64(n) / 1000
}

// writeAccounts leaves a data directory with n accounts in its snapshot: account returns the i-th.
func writeAccounts(b *testing.B, path string, n int, account func(i, n int) *ledger.Account) {
	b.Helper()
	dir, err := datadir.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	root := rootBlock(1000)
	var hash ledger.StateHash
	for i := range n {
		hash.Add(account(i, n).StateTerm())
	}
	record := &ledger.Record{Version: 1, Kind: ledger.BlockRecord, Slot: root.Slot, Hash: root.Blockhash, Block: root, FirstSeq: 1, StateHash: hash}
	log, err := wal.Open(wal.Config{FS: vfs.Disk{}, Dir: datadir.LogDir(path), Logger: slog.New(slog.DiscardHandler)}, wal.End{})
	if err == nil {
		err = log.Commit([]*ledger.Record{record})
	}
	if err == nil {
		err = log.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	store, err := snapshot.OpenStore(vfs.Disk{}, datadir.SnapshotDir(path), nil)
	if err != nil {
		b.Fatal(err)
	}
	const parts = 2
	var all []snapshot.Part
	for p := range parts {
		all = append(all, snapshot.Part{
			Accounts: func(visit func(*ledger.Account) bool) error {
				for i := n * p / parts; i < n*(p+1)/parts; i++ {
					visit(account(i, n))
				}
				return nil
			},
			Mints: func(visit func(ledger.MintWrite) bool) error { return nil },
		})
	}
	m := snapshot.Meta{Version: 1, StateHash: hash, Slot: root.Slot, Blockhash: root.Blockhash, Block: root, Root: root.Slot, Floor: root.Slot}
	if _, err := store.Write(context.Background(), m, all, []snapshot.HeldBlock{{Block: root}}, snapshot.Pace{}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRecovery measures a start, from nothing to the first correct answer: LEDGERD_BENCH_ACCOUNTS
// accounts in a snapshot, half of them token accounts. Where redis-server is installed it loads
// as many keys with as many bytes beside it, in the same run.
func BenchmarkRecovery(b *testing.B) {
	n := recoveredAccounts(b)
	path := b.TempDir()
	payload := writeBench(b, path, n)
	b.Run("ledgerd", func(b *testing.B) {
		for b.Loop() {
			recoverOnce(b, path, n)
		}
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "accounts/s")
	})
	b.Run("redis", func(b *testing.B) {
		program, err := exec.LookPath("redis-server")
		if err != nil {
			b.Skip("redis-server is not installed")
		}
		dir := b.TempDir()
		fillRedis(b, program, dir, n, int(payload/int64(n))-32)
		for b.Loop() {
			r := startRedis(b, program, dir)
			r.stop(b)
		}
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
	})
}

func recoverOnce(b *testing.B, path string, n int) {
	dir, err := datadir.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := New(Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for {
		changed := e.nextPublication()
		want := benchAccount(n/3, n)
		a, _, err := e.Account(ledger.Query{}, want.Pubkey)
		if err == nil {
			if !a.SameState(want) {
				b.Fatalf("got %+v, want %+v", a, want)
			}
			break
		}
		select {
		case <-changed:
		case err := <-ended:
			b.Fatal(err)
		}
	}
	b.StopTimer()
	cancel()
	<-ended
	b.StartTimer()
}

// redis is a running redis-server.
type redis struct {
	command *exec.Cmd
	conn    net.Conn
	answers *bufio.Reader
}

// startRedis returns once the server answers a question from what it loaded.
func startRedis(b *testing.B, program, dir string) *redis {
	socket := filepath.Join(dir, "redis.sock")
	os.Remove(socket)
	r := &redis{command: exec.Command(program, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--dbfilename", "dump.rdb")}
	if err := r.command.Start(); err != nil {
		b.Fatal(err)
	}
	for {
		var err error
		if r.conn, err = net.Dial("unix", socket); err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		r.answers = bufio.NewReader(r.conn)
		fmt.Fprint(r.conn, "GET none\r\n")
		if line, err := r.answers.ReadString('\n'); err == nil && line[0] == '$' {
			return r
		}
		r.conn.Close()
		time.Sleep(time.Millisecond)
	}
}

func (r *redis) stop(b *testing.B) {
	b.StopTimer()
	defer b.StartTimer()
	r.conn.Close()
	r.command.Process.Kill()
	r.command.Wait()
}

// fillRedis leaves a dump of n keys of 32 bytes with values of a size.
func fillRedis(b *testing.B, program, dir string, n, valueBytes int) {
	r := startRedis(b, program, dir)
	defer r.stop(b)
	w := bufio.NewWriterSize(r.conn, 1<<20)
	go func() {
		value := make([]byte, valueBytes)
		for i := range n {
			k := benchKey(i, n)
			h := sha256.Sum256(k[:])
			for at := 0; at < len(value); at += len(h) {
				copy(value[at:], h[:])
			}
			fmt.Fprintf(w, "*3\r\n$3\r\nSET\r\n$32\r\n%s\r\n$%d\r\n%s\r\n", k[:], valueBytes, value)
		}
		fmt.Fprint(w, "SAVE\r\n")
		w.Flush()
	}()
	for range n + 1 {
		if line, err := r.answers.ReadString('\n'); err != nil || line[0] != '+' {
			b.Fatalf("redis said %q, %v", line, err)
		}
	}
}
