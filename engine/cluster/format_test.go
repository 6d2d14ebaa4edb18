package cluster

import (
	"encoding/binary"
	"errors"
	"flag"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// streamOf returns messages as a writer would make them: a claim, then commits.
func streamOf(t testing.TB, seed uint64, sizes ...int) (messages [][]byte, records []*ledger.Record) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	e, err := newEncoder()
	must(t, err)
	d := decoderAt(t, ledger.LogPoint{})
	add := func(m []byte) []*ledger.Record {
		messages = append(messages, append([]byte(nil), m...))
		got, err := d.take(uint64(len(messages)), m)
		ledgertest.Mustf(t, err, "message %d", len(messages))
		return got
	}
	add(encodeClaim(d.at, "node", [nonceBytes]byte{1}))
	for _, updates := range sizes {
		commit := commitOf(random, d.at.point, 1+random.IntN(3), updates)
		chunks, after, err := e.encode(commit, d.at)
		must(t, err)
		var got []*ledger.Record
		for _, m := range chunks {
			ledgertest.MustHold(t, len(m) <= maxMessageBytes, "a message of %d bytes", len(m))
			got = add(m)
		}
		mustEqual(t, got, commit)
		after.sequence = d.at.sequence
		ledgertest.Equal(t, d.at, after, "where the reader stands, and the writer")
		records = append(records, commit...)
	}
	return messages, records
}

func decoderAt(t testing.TB, from ledger.LogPoint) *decoder {
	t.Helper()
	d, err := newDecoder(0, from, (&counters{refused: new(metrics.Counter)}).countDamage)
	must(t, err)
	t.Cleanup(d.close)
	return d
}

// taken takes messages in from the beginning of a stream.
func taken(t testing.TB, from ledger.LogPoint, messages ...[]byte) (records []*ledger.Record, err error) {
	t.Helper()
	d := decoderAt(t, from)
	defer d.close()
	for i, m := range messages {
		commit, err := d.take(uint64(i+1), m)
		if err != nil {
			return nil, err
		}
		records = append(records, commit...)
	}
	return records, nil
}

// TestCommitsComeBackAsTheyWereWritten reads what was written from every place that a node may stand at.
func TestCommitsComeBackAsTheyWereWritten(t *testing.T) {
	messages, records := streamOf(t, 1, 0, 3, 4000, 1, 0, 900, 2)
	for stand := 0; stand <= len(records); stand++ {
		got, err := taken(t, pointAfter(records[:stand]), messages...)
		ledgertest.Mustf(t, err, "from version %d", stand)
		mustEqual(t, got, records[stand:])
	}
}

// restamp gives a message the checksum of what its head says now.
func restamp(m []byte) []byte {
	binary.LittleEndian.PutUint32(m[headCRCAt:], crc32.Checksum(m[:headCRCAt], castagnoli))
	return m
}

// F54: TestWhatWasChangedIsRefused changes each byte of a stream in turn, with and without the head's checksum set right.
func TestWhatWasChangedIsRefused(t *testing.T) {
	messages, _ := streamOf(t, 3, 2, 1)
	for i, m := range messages {
		for at := range m {
			for _, right := range []bool{false, true} {
				if right && at >= headCRCAt {
					continue
				}
				changed := slices.Clone(messages)
				changed[i] = slices.Clone(m)
				changed[i][at] ^= 0x41
				if right {
					restamp(changed[i])
				}
				if _, err := taken(t, ledger.LogPoint{}, changed...); err == nil {
					t.Fatalf("message %d with byte %d changed (checksum right: %t) was taken", i, at, right)
				}
			}
		}
	}
}

// TestHostileHeadsAreRefused says of sizes what cannot be.
func TestHostileHeadsAreRefused(t *testing.T) {
	good := head{kind: commitMessage, stored: true, epoch: 1, first: 1, chunks: 1, records: 1, raw: 200, packed: 200}
	payload := make([]byte, 200)
	must(t, good.check(len(payload)))
	for name, change := range map[string]func(*head){
		"no epoch":                      func(h *head) { h.epoch = 0 },
		"no version":                    func(h *head) { h.first = 0 },
		"unknown kind":                  func(h *head) { h.kind = 9 },
		"no records":                    func(h *head) { h.records = 0 },
		"more records than fit":         func(h *head) { h.records = 3 },
		"versions beyond the end":       func(h *head) { h.first = ^ledger.Version(0) },
		"no chunks":                     func(h *head) { h.chunks = 0 },
		"more chunks than bytes":        func(h *head) { h.chunks = 2 },
		"a chunk after the last":        func(h *head) { h.chunk = 1 },
		"stored and other sizes":        func(h *head) { h.raw = 300 },
		"bytes that become too many":    func(h *head) { h.stored, h.raw = false, 200*maxRatio+1 },
		"a commit beyond all measure":   func(h *head) { h.stored, h.raw = false, maxCommitBytes+1 },
		"nothing in it":                 func(h *head) { h.packed, h.raw = 0, 0 },
		"more bytes than the chunk has": func(h *head) { h.packed, h.raw = 201, 201 },
		"4 GiB in chunks": func(h *head) {
			h.packed, h.raw, h.chunks = 1<<32-1, 1<<32-1, (1<<32-1)/maxChunkBytes+1
		},
	} {
		h := good
		change(&h)
		_, err := decodeHead(append(h.append(nil), payload...))
		var damage *DamageError
		ledgertest.Holds(t, errors.As(err, &damage), "%s: %+v: err = %v, want damage to the head", name, h, err)
	}
	newer := good.append(nil)
	newer[4]++
	_, err := decodeHead(append(newer, payload...))
	ledgertest.ErrorIs(t, err, ErrFormat, "a newer format")
}

// F53: TestMessagesOutOfPlaceAreRefused leaves out, repeats and exchanges messages.
func TestMessagesOutOfPlaceAreRefused(t *testing.T) {
	messages, _ := streamOf(t, 4, 3000, 3000, 1)
	other, _ := streamOf(t, 5, 3000, 3000, 1)
	for i := 1; i < len(messages); i++ {
		// The first commit of both streams belongs after the same claim.
		for name, next := range map[string][]byte{
			"the one before": messages[i-1], "of another stream": other[min(max(i, 2), len(other)-1)],
			"a claim of the same epoch": encodeClaim(cursor{}, "x", [nonceBytes]byte{}),
		} {
			var damage *DamageError
			_, err := taken(t, ledger.LogPoint{}, append(slices.Clone(messages[:i]), next)...)
			if !errors.As(err, &damage) || damage.Sequence != uint64(i+1) {
				t.Errorf("%s as message %d: err = %v, want damage there", name, i+1, err)
			}
		}
		_, err := taken(t, ledger.LogPoint{}, slices.Delete(slices.Clone(messages), i, i+1)...)
		ledgertest.Holds(t, i >= len(messages)-1 || err != nil, "without message %d the stream was taken", i+1)
	}
}

// TestWhatCompressesTooWellIsStored writes zeros: a reader takes room only as the messages justify.
func TestWhatCompressesTooWellIsStored(t *testing.T) {
	e, err := newEncoder()
	must(t, err)
	commit := commitOf(rand.New(rand.NewPCG(7, 0)), ledger.LogPoint{}, 1, 100_000)
	for i := range commit[0].Updates {
		commit[0].Updates[i] = ledger.Update{Account: ledger.Account{Known: ledger.FieldsShown}}
	}
	chunks, _, err := e.encode(commit, cursor{epoch: 1})
	must(t, err)
	h, err := decodeHead(chunks[0])
	ledgertest.MustHold(t, err == nil && h.stored, "head %+v, %v: want it stored", h, err)
}

// FuzzMessages takes whatever comes as the messages of a stream: an error or records, and never more room than is justified.
func FuzzMessages(f *testing.F) {
	messages, _ := streamOf(f, 8, 1, 3)
	for _, m := range messages {
		f.Add(messages[0], m, true)
		f.Add(m, m, false)
	}
	f.Fuzz(func(t *testing.T, first, second []byte, right bool) {
		d := decoderAt(t, ledger.LogPoint{})
		for i, m := range [][]byte{first, second} {
			if right && len(m) >= headBytes {
				m = restamp(append([]byte(nil), m...))
			}
			commit, err := d.take(uint64(i+1), m)
			if err != nil {
				return
			}
			if len(commit) == 0 {
				continue
			}
			e, err := newEncoder()
			must(t, err)
			h, _ := decodeHead(m)
			before := cursor{epoch: h.epoch, chain: h.chain, point: ledger.LogPoint{Version: h.first - 1, StateHash: h.state}}
			if _, after, err := e.encode(commit, before); err != nil || after.chain != d.at.chain || after.point != d.at.point {
				t.Fatalf("what was taken is not what would be written: %+v, %+v, %v", after, d.at, err)
			}
		}
	})
}

var update = flag.Bool("update", false, "rewrite the golden files")

// TestFormat1StaysReadable reads a stream that was written by an earlier program.
func TestFormat1StaysReadable(t *testing.T) {
	const name = "testdata/format-1.stream" // messages, each after its length in 4 bytes
	messages, records := streamOf(t, 14, 1, 700, 0)
	if *update {
		var b []byte
		for _, m := range messages {
			b = append(binary.LittleEndian.AppendUint32(b, uint32(len(m))), m...)
		}
		must(t, os.WriteFile(name, b, 0o644))
	}
	b := ledgertest.ReadFile(t, name)
	var stored [][]byte
	for len(b) > 0 {
		n := 4 + int(binary.LittleEndian.Uint32(b))
		stored, b = append(stored, b[4:n]), b[n:]
	}
	got, err := taken(t, ledger.LogPoint{}, stored...)
	must(t, err)
	mustEqual(t, got, records)
}
