package geyser

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// document is geyser.proto: by message, the number of each field.
type document map[string]map[string]string

func readDocument(t *testing.T) document {
	t.Helper()
	content, err := os.ReadFile("geyser.proto")
	if err != nil {
		t.Fatal(err)
	}
	field := regexp.MustCompile(`^\s*(?:optional |repeated )?[\w.<>, ]+?\s+(\w+) = (\d+);`)
	value := regexp.MustCompile(`^\s*(\w+) = (\d+);`)
	d := document{}
	in := ""
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && (words[0] == "message" || words[0] == "enum"):
			in = words[1]
			d[in] = map[string]string{}
		case in == "":
		default:
			m := field.FindStringSubmatch(line)
			if m == nil {
				m = value.FindStringSubmatch(line)
			}
			if m != nil {
				d[in][m[1]] = m[2]
			}
		}
	}
	return d
}

// The numbers in the code are those of geyser.proto: requests here, updates in the comments over the functions of
// package yellowstone that read them, as "name number".
func TestFieldNumbersAreThoseOfTheDocument(t *testing.T) {
	d := readDocument(t)
	number := func(n protowire.Number) string { return strings.TrimSpace(string(appendDecimal(n))) }
	for _, tt := range []struct {
		message, field string
		code           protowire.Number
	}{
		{"SubscribeRequest", "accounts", requestAccounts}, {"SubscribeRequest", "slots", requestSlots},
		{"SubscribeRequest", "transactions", requestTransactions}, {"SubscribeRequest", "blocks_meta", requestBlocksMeta},
		{"SubscribeRequest", "commitment", requestCommitment}, {"SubscribeRequest", "accounts_data_slice", requestDataSlice},
		{"SubscribeRequest", "ping", requestPing}, {"SubscribeRequest", "from_slot", requestFromSlot},
		{"SubscribeRequestFilterSlots", "interslot_updates", slotsInterslotUpdates},
		{"SubscribeRequestFilterTransactions", "vote", transactionsVote},
		{"SubscribeRequestAccountsDataSlice", "offset", sliceOffset}, {"SubscribeRequestAccountsDataSlice", "length", sliceLength},
		{"SubscribeRequestPing", "id", pingID}, {"CommitmentLevel", "PROCESSED", commitmentProcessed},
	} {
		if got := d[tt.message][tt.field]; got != number(tt.code) {
			t.Errorf("%s.%s is %s in geyser.proto, %d in the code", tt.message, tt.field, got, tt.code)
		}
	}
	var code strings.Builder
	for _, name := range []string{"account.go", "message.go", "transaction.go"} {
		content, err := os.ReadFile("../yellowstone/" + name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(content)
	}
	comments := strings.Join(strings.Fields(strings.ReplaceAll(code.String(), "//", " ")), " ")
	for message, fields := range d {
		if strings.HasPrefix(message, "SubscribeRequest") || message == "CommitmentLevel" || message == "SlotStatus" {
			continue
		}
		for name, n := range fields {
			if !strings.Contains(comments, name+" "+n) && !strings.Contains(comments, name+" {") {
				t.Errorf("package yellowstone does not say that it reads %s.%s as %s", message, name, n)
			}
		}
	}
}

func appendDecimal(n protowire.Number) []byte {
	if n < 10 {
		return []byte{'0' + byte(n)}
	}
	return append(appendDecimal(n/10), '0'+byte(n%10))
}

// Whatever is asked for, a request is well formed and says it.
func FuzzSubscription(f *testing.F) {
	f.Add(true, false, true, uint64(7), true)
	f.Fuzz(func(t *testing.T, sliced, noTransactions, skipVotes bool, from uint64, hasFrom bool) {
		s := subscription{sliced: sliced, noTransactions: noTransactions, skipVotes: skipVotes}
		if hasFrom {
			s.from = ledger.Some(ledger.Slot(from))
		}
		seen := map[protowire.Number]int{}
		b := s.encode()
		c := call{request: b}
		for len(b) > 0 {
			n, kind, k := protowire.ConsumeTag(b)
			if k < 0 {
				t.Fatalf("%x is no message", s.encode())
			}
			l := protowire.ConsumeFieldValue(n, kind, b[k:])
			if l < 0 {
				t.Fatalf("%x is no message", s.encode())
			}
			seen[n]++
			b = b[k+l:]
		}
		if seen[requestAccounts] != 1 || seen[requestSlots] != 1 || seen[requestBlocksMeta] != 1 || seen[requestCommitment] != 1 ||
			(seen[requestTransactions] == 1) == noTransactions || (seen[requestDataSlice] == 6) != sliced || c.from() != s.from {
			t.Errorf("%+v is encoded as %v, from %v", s, seen, c.from())
		}
	})
}

// Whatever bytes come as a message, they are taken or told to be garbage.
func FuzzMessages(f *testing.F) {
	for _, m := range straight(101, 102) {
		f.Add([]byte(m), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, sliced bool) {
		m := message{}
		m.decoder.Sliced = sliced
		data, err := codec{}.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := (codec{}).Unmarshal(data, &m); err != nil || m.size != len(b) {
			t.Errorf("%x: %v, %d bytes", b, err, m.size)
		}
	})
}
