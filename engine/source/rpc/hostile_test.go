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
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/source/upstream"
)

// mostMemory is what the whole process may take, whatever a node answers.
const mostMemory = 512 << 20

// writeTimes writes a text so many times, or until the client hangs up.
func writeTimes(w io.Writer, text string, times int) {
	const chunk = 1 << 12
	var err error
	for all := strings.Repeat(text, chunk); times > 0 && err == nil; times -= chunk {
		_, err = io.WriteString(w, all[:len(text)*min(times, chunk)])
	}
}

// F27: an answer of 64 MiB may take gigabytes when it is decoded: elements are counted, and of several large answers one is
// read at a time.
func TestAHostileAnswerTakesBoundedMemory(t *testing.T) {
	if bubbletest.RaceEnabled {
		t.Skip("the race detector takes several times the memory")
	}
	// How much garbage lies beside what is held depends on how much of the processor the collector gets; it is asked to keep up.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(mostMemory - 64<<20))
	const block, accounts, all = 64 << 20, 32 << 20, 1 << 30
	// What has too many elements is refused alike, whatever they are.
	tests := []struct {
		name, method string
		head, text   string // of the result
		tail         string
		times, size  int
		want         upstream.Kind
	}{
		{"rewards", "getBlock", `"rewards":[{}`, `,{}`, `]`, all, block, upstream.TooLarge},
		{"as many transactions as may be", "getBlock", `"transactions":[{}`, `,{}`, `]`, maxElements/2 - 1000, block, upstream.Garbage},
		{"nested", "getBlock", `"transactions":`, `[`, ``, all, block, upstream.TooLarge},
		{"nested less", "getBlock", `"transactions":`, `[`, ``, 20_000, 1 << 20, upstream.Garbage},
		{"a text", "getBlock", `"blockhash":"`, `a`, `"`, all, block, upstream.Garbage},
		{"accounts", "getMultipleAccounts", `"context":{"slot":9},"value":[0`, `,0`, `]`, all, accounts, upstream.TooLarge},
	}
	for _, tt := range tests {
		c := Config{From: ledger.Some(ledger.Slot(1)), Parallel: 1}
		if tt.times < all {
			c.Parallel = 6 // at once they would take too much, as they are decoded
		}
		play(t, c, func(t *testing.T, n *fakeNode, s *Source) {
			n.add(0, slots(1, 50)...)
			for slot := ledger.Slot(1); slot <= 50; slot++ {
				n.pay(slot, 5, keyOf(1))
			}
			n.fault = on(tt.method, func(c *fakeCall) bool {
				n.unlocked(func() {
					head, tail := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s`, c.ID, tt.head), tt.tail+"}}"
					room := tt.size - len(head) - len(tail)
					times := min(tt.times, room/len(tt.text))
					fmt.Fprint(c, head)
					writeTimes(c, tt.text, times)
					writeTimes(c, " ", room-times*len(tt.text))
					fmt.Fprint(c, tail)
				})
				return true
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				for range 600 {
					time.Sleep(100 * time.Millisecond)
					told := tt.name != "rewards" || strings.Contains(s.Trouble(), tt.want.Reason()) // after some attempts
					if told && s.Upstream().Errors[tt.want] > 0 {
						return
					}
				}
				t.Errorf("%s: counted as %v, trouble %q", tt.name, s.Upstream().Errors, s.Trouble())
			}()
			if err := s.Run(ctx, nil, func(context.Context, ledger.Event) error { return nil }); err != context.Canceled {
				t.Errorf("%s: Run: err = %v", tt.name, err)
			}
			var usage syscall.Rusage
			must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
			if took := usage.Maxrss << 10; took > mostMemory {
				t.Fatalf("%s: the process took %d MiB", tt.name, took>>20)
			}
		})
	}
}
