package file

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

const recordedStream = "streams/mainnet-398202772-398202821.geyser.bin.gz"

// part is a field of a message: a number, or bytes.
type part struct {
	number int
	value  uint64
	bytes  []byte
}

// partsOf takes a message apart.
func partsOf(b []byte) (parts []part) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		p := part{number: int(number)}
		b = b[n:]
		if kind == protowire.VarintType {
			p.value, n = protowire.ConsumeVarint(b)
		} else {
			p.bytes, n = protowire.ConsumeBytes(b)
		}
		b = b[n:]
		parts = append(parts, p)
	}
	return parts
}

// told returns what the messages of the recording say, in order, as the events in short. A block is there
// when both its head and the word that it is processed are.
func told(t *testing.T) (lines []string) {
	t.Helper()
	messages := bytes.NewReader(datatest.Read(t, datatest.Path(t, recordedStream)))
	heads, processed := map[uint64]string{}, map[uint64]bool{}
	for {
		var length [4]byte
		if _, err := io.ReadFull(messages, length[:]); err == io.EOF {
			return lines
		}
		message := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(messages, message); err != nil {
			t.Fatal(err)
		}
		for _, p := range partsOf(message) {
			if p.number != 3 && p.number != 7 {
				continue
			}
			values, texts := map[int]uint64{}, map[int]string{}
			for _, f := range partsOf(p.bytes) {
				if values[f.number], texts[f.number] = f.value, string(f.bytes); f.number == 4 || f.number == 5 {
					values[f.number] = partsOf(f.bytes)[0].value
				}
			}
			slot := values[1]
			switch {
			case p.number == 7:
				heads[slot] = fmt.Sprintf("block %d %s on %d %s at %d, height %d, %d transactions",
					slot, texts[2], values[6], texts[7], values[4], values[5], values[8])
				if processed[slot] {
					lines = append(lines, heads[slot])
				}
			case p.number == 3 && values[3] == 0:
				if processed[slot] = true; heads[slot] != "" {
					lines = append(lines, heads[slot])
				}
			case p.number == 3 && values[3] == 1, p.number == 3 && values[3] == 2:
				line := fmt.Sprintf("slot %d is %s", slot, []string{1: "confirmed", 2: "finalized"}[values[3]])
				if head := heads[slot]; head != "" {
					line += " as " + strings.Fields(head)[2]
				}
				lines = append(lines, line)
			}
		}
	}
}

// The recorded live stream is the recorded chain: hashes, parents, times, and what the slots came
// to, in order.
func TestRecordedValidatorStreamIsTheChain(t *testing.T) {
	want := told(t)
	s, lines := open(t, datatest.Path(t, recordedStream))
	events, err := run(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	parent := ledger.Hash{}
	blocks := 0
	for _, e := range events {
		switch e := e.(type) {
		case *ledger.Block:
			got = append(got, fmt.Sprintf("block %d %s on %d %s at %d, height %d, %d transactions",
				e.Slot, e.Blockhash, e.ParentSlot, e.PreviousBlockhash.Value, e.Time.Value, e.Height.Value, e.TransactionCount))
			if blocks++; blocks > 1 && e.PreviousBlockhash.Value != parent {
				t.Errorf("block %d does not build on the one before", e.Slot)
			}
			parent = e.Blockhash
		case *ledger.SlotStatus:
			line := fmt.Sprintf("slot %d is %s", e.Slot, e.Status)
			if e.Blockhash.Known {
				line += " as " + e.Blockhash.Value.String()
			}
			got = append(got, line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if blocks != 49 || !strings.Contains(lines.String(), "slots=1") {
		t.Errorf("%d blocks, and the log says %q; the recording ends before the last of 50 slots has its head", blocks, lines)
	}
}

// Damage anywhere is told or ends the recording early; it makes up nothing.
func TestDamagedValidatorStreamMakesUpNothing(t *testing.T) {
	whole := datatest.Read(t, datatest.Path(t, recordedStream))[:200_000]
	chain := strings.Join(told(t), "\n")
	for at := 0; at < len(whole); at += 997 {
		s, _ := open(t, write(t, "stream", string(whole[:at])+"\xff\xff\xff\xff"+string(whole[at:])))
		events, err := run(s, nil)
		if err == nil {
			t.Errorf("damage at byte %d goes unnoticed", at)
		}
		for _, e := range events {
			if b, ok := e.(*ledger.Block); ok && !strings.Contains(chain, fmt.Sprintf("block %d %s ", b.Slot, b.Blockhash)) {
				t.Errorf("damage at byte %d makes up block %s", at, b.Blockhash)
			}
		}
	}
}
