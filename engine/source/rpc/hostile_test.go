package rpc

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
)

// mostMemory is what the whole process may take, whatever a node answers.
const mostMemory = 512 << 20

// peak returns the most memory that the process ever took.
func peak(t *testing.T) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return usage.Maxrss << 10
}

// repeat writes head, then a text so many times, as far as there is room, then blanks up to so many bytes, and last the tail.
func repeat(w io.Writer, head, text string, times, size int, tail string) {
	io.WriteString(w, head)
	times = min(times, (size-len(head)-len(tail))/len(text))
	blanks := size - len(head) - len(tail) - times*len(text)
	for _, part := range []struct {
		text  string
		times int
	}{{text, times}, {" ", blanks}} {
		const chunk = 1 << 15
		many := strings.Repeat(part.text, chunk)
		for left := part.times; left > 0; left -= chunk {
			if _, err := io.WriteString(w, many[:len(part.text)*min(left, chunk)]); err != nil {
				return // the client hung up
			}
		}
	}
	io.WriteString(w, tail)
}

// An answer of 64 MiB may take gigabytes when it is decoded: elements are counted, and of several large answers one is
// read at a time.
func TestAHostileAnswerTakesBoundedMemory(t *testing.T) {
	if bubble.RaceEnabled {
		t.Skip("the race detector takes several times the memory")
	}
	// How much garbage lies beside what is held depends on how much of the processor the collector gets; it is asked to keep up.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(mostMemory - 64<<20))
	const block, accounts, all = 64 << 20, 32 << 20, 1 << 30
	transaction := `"transactions":[{"transaction":{"signatures":["` + strings.Repeat("1", 64) + `"],"message":{"accountKeys":["` + strings.Repeat("1", 32) + `"`
	tests := []struct {
		name, method string
		head, text   string // of the result
		tail         string
		times, size  int
		want         upstream.Kind
	}{
		{"transactions", "getBlock", `"transactions":[{}`, `,{}`, `]`, all, block, upstream.TooLarge},
		{"as many transactions as may be", "getBlock", `"transactions":[{}`, `,{}`, `]`, maxElements/2 - 1000, block, upstream.Garbage},
		{"rewards", "getBlock", `"rewards":[{}`, `,{}`, `]`, all, block, upstream.TooLarge},
		{"signatures", "getBlock", `"signatures":[""`, `,""`, `]`, all, block, upstream.TooLarge},
		{"keys", "getBlock", transaction, `,""`, `]}}}]`, all, block, upstream.TooLarge},
		{"token balances", "getBlock", transaction + `]}},"meta":{"postTokenBalances":[{}`, `,{}`, `]}}]`, all, block, upstream.TooLarge},
		{"balances", "getBlock", transaction + `]}},"meta":{"postBalances":[0`, `,0`, `]}}]`, all, block, upstream.TooLarge},
		{"nested", "getBlock", `"transactions":`, `[`, ``, all, block, upstream.TooLarge},
		{"nested less", "getBlock", `"transactions":`, `[`, ``, 20_000, 1 << 20, upstream.Garbage},
		{"the same name", "getBlock", `"rewards":[]`, `,"transactions":[]`, ``, all, block, upstream.TooLarge},
		{"a text", "getBlock", `"blockhash":"`, `a`, `"`, all, block, upstream.Garbage},
		{"accounts", "getMultipleAccounts", `"context":{"slot":9},"value":[0`, `,0`, `]`, all, accounts, upstream.TooLarge},
	}
	for _, tt := range tests {
		play(t, Config{From: ledger.Some(ledger.Slot(1))}, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(0, slots(1, 50)...)
			for slot := ledger.Slot(1); slot <= 50; slot++ {
				n.pay(slot, 5, keyOf(1))
			}
			n.fault = on(tt.method, func(c *fakeCall) bool {
				n.unlocked(func() {
					head := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s`, c.ID, tt.head)
					repeat(c, head, tt.text, tt.times, tt.size, tt.tail+"}}")
				})
				return true
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				for range 600 {
					time.Sleep(100 * time.Millisecond)
					seen := s.Upstream().Errors[tt.want]
					if tt.method != "getBlock" && seen > 0 || seen > 2 && (tt.want == upstream.Garbage || strings.Contains(s.Trouble(), tt.want.Reason())) {
						return
					}
				}
				t.Errorf("%s: counted as %v, trouble %q", tt.name, s.Upstream().Errors, s.Trouble())
			}()
			if err := s.Run(ctx, nil, (&recorder{}).emit); err != context.Canceled {
				t.Errorf("%s: Run: err = %v", tt.name, err)
			}
			if took := peak(t); took > mostMemory {
				t.Fatalf("%s: the process took %d MiB", tt.name, took>>20)
			}
		})
	}
}
