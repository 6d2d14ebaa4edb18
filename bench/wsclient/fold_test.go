package wsclient

import (
	"fmt"
	"reflect"
	"testing"
)

// told returns an update of the extended form.
func told(key string, lamports, slot, seq uint64) string {
	return fmt.Sprintf(`{"type":"account_update","pubkey":%q,"lamports":%d,"timestamp":"2026-02-05T12:34:56Z","slot":%d,"seq":%d,"owner":"Own","executable":false,"commitment":"processed"}`,
		key, lamports, slot, seq)
}

const (
	keyA = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
	keyB = "11111111111111111111111111111111"
)

func TestStateOfFrames(t *testing.T) {
	rollback := `{"type":"rollback","from_slot":9,"to_slot":7,"seq":3}`
	rollback5 := `{"type":"rollback","from_slot":9,"to_slot":7,"seq":5}`
	tests := map[string]struct {
		frames []string
		want   State // without Accounts and Frames
	}{
		"in order": {[]string{told(keyA, 1, 8, 1), told(keyB, 1, 8, 2), `{"type":"slot_end","slot":8,"seq":2}`, `{"type":"heartbeat","slot":8,"seq":2,"timestamp":null}`},
			State{Seq: 2, Slot: 8, Updates: 2, SlotEnds: 1, Ended: 8}},
		"from the middle":       {[]string{told(keyA, 1, 8, 70), told(keyB, 1, 8, 71)}, State{Seq: 71, Slot: 8, Updates: 2}},
		"two are missing":       {[]string{told(keyA, 1, 8, 1), told(keyB, 1, 8, 4)}, State{Seq: 4, Slot: 8, Updates: 2, Missing: 2}},
		"the end knows of more": {[]string{told(keyA, 1, 8, 1), `{"type":"slot_end","slot":8,"seq":3}`}, State{Seq: 3, Slot: 8, Updates: 1, SlotEnds: 1, Ended: 8, Missing: 2}},
		"the beat knows more":   {[]string{told(keyA, 1, 8, 1), `{"type":"heartbeat","slot":8,"seq":2,"timestamp":null}`}, State{Seq: 2, Slot: 8, Updates: 1, Missing: 1}},
		"told again":            {[]string{told(keyA, 1, 8, 1), told(keyA, 1, 8, 1)}, State{Seq: 1, Slot: 8, Updates: 2, Repeated: 1}},
		"told late":             {[]string{told(keyA, 1, 8, 1), told(keyA, 1, 8, 2), told(keyA, 1, 8, 1)}, State{Seq: 2, Slot: 8, Updates: 3, Repeated: 1}},
		"rollback": {[]string{told(keyA, 1, 9, 3), rollback, told(keyA, 1, 7, 3), told(keyB, 1, 7, 3), told(keyA, 1, 10, 4)},
			State{Seq: 4, Slot: 10, Updates: 4, Rollbacks: 1}},
		"restores with numbers": {[]string{told(keyA, 1, 9, 3), rollback, told(keyA, 1, 7, 4), told(keyA, 1, 7, 4)},
			State{Seq: 4, Slot: 7, Updates: 3, Rollbacks: 1, Repeated: 1}},
		"gap": {[]string{told(keyA, 1, 8, 1), `{"type":"gap","from_seq":1,"to_seq":9}`, told(keyA, 1, 8, 4), told(keyB, 1, 8, 9), told(keyA, 1, 8, 10)},
			State{Seq: 10, Slot: 8, Updates: 4, Gaps: 1}},
		"missing before a gap": {[]string{told(keyA, 1, 8, 1), `{"type":"gap","from_seq":3,"to_seq":9}`, told(keyB, 1, 8, 9)}, State{Seq: 9, Slot: 8, Updates: 2, Gaps: 1, Missing: 2}},
		"missing after a gap":  {[]string{told(keyA, 1, 8, 1), `{"type":"gap","from_seq":1,"to_seq":9}`, told(keyB, 1, 8, 8), told(keyB, 1, 8, 12)}, State{Seq: 12, Slot: 8, Updates: 3, Gaps: 1, Missing: 2}},
		"resumed": {[]string{told(keyA, 1, 8, 5), `{"type":"resumed","id":null,"from_seq":5}`, `{"type":"slot_end","slot":8,"seq":5}`, told(keyB, 1, 9, 6)},
			State{Seq: 6, Slot: 9, Updates: 2, Resumed: 1, SlotEnds: 1, Ended: 8}},
		"resumed at a restore": {[]string{told(keyA, 1, 7, 5), `{"type":"resumed","id":null,"from_seq":5}`, rollback5, told(keyA, 1, 7, 5), told(keyB, 1, 7, 5)},
			State{Seq: 5, Slot: 7, Updates: 3, Resumed: 1, Rollbacks: 1}},
		"resumed inside one": {[]string{told(keyA, 1, 7, 5), `{"type":"resumed","id":null,"from_seq":5}`, told(keyB, 1, 7, 5)}, State{Seq: 5, Slot: 7, Updates: 2, Resumed: 1}},
		"resumed too far on": {[]string{told(keyA, 1, 8, 5), `{"type":"resumed","id":null,"from_seq":7}`, told(keyB, 1, 9, 8)}, State{Seq: 8, Slot: 9, Updates: 2, Resumed: 1, Missing: 2}},
		"resumed too early":  {[]string{told(keyA, 1, 8, 5), `{"type":"resumed","id":null,"from_seq":3}`, told(keyB, 1, 8, 4)}, State{Seq: 5, Slot: 8, Updates: 2, Resumed: 1, Repeated: 1}},
		"start over":         {[]string{told(keyA, 1, 8, 5), `{"type":"resync_required","id":null,"oldest_seq":20,"newest_seq":30}`, told(keyB, 1, 9, 31)}, State{Seq: 31, Slot: 9, Updates: 2, Resyncs: 1}},
		"snapshot": {[]string{told(keyA, 1, 8, 5), `{"type":"subscribed","id":1,"pubkeys":2,"programs":0,"slot":8,"seq":5}`, told(keyA, 1, 8, 5), told(keyB, 1, 8, 5), `{"type":"snapshot_end","id":1,"slot":8,"seq":5}`, told(keyB, 1, 9, 6)},
			State{Seq: 6, Slot: 9, Updates: 4}},
		"an answer": {[]string{`{"type":"pong","id":4,"slot":8,"seq":5,"timestamp":null}`}, State{}},
	}
	for name, tt := range tests {
		got := State{Whole: true}
		for _, f := range tt.frames {
			if err := got.Apply([]byte(f)); err != nil {
				t.Errorf("%s: Apply(%s): %v", name, f, err)
			}
		}
		tt.want.Frames, tt.want.Whole = len(tt.frames), true
		got.Accounts, got.conflatedTo, got.snapshot, got.restoring = nil, 0, false, false
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// Who subscribes a part of the accounts hears a part of the numbers.
func TestPartOfTheStreamHasHoles(t *testing.T) {
	var s State
	for _, f := range []string{told(keyA, 1, 8, 1), told(keyA, 1, 8, 7), `{"type":"slot_end","slot":8,"seq":9}`, told(keyA, 1, 8, 7)} {
		if err := s.Apply([]byte(f)); err != nil {
			t.Fatal(err)
		}
	}
	if s.Missing != 0 || s.Repeated != 1 || s.Seq != 9 {
		t.Errorf("got %+v", s)
	}
}

func TestStateHoldsTheLastUpdate(t *testing.T) {
	var s State
	for _, f := range []string{
		told(keyA, 1, 8, 1), told(keyA, 2, 9, 2),
		`{"type":"account_update","pubkey":"` + keyB + `","lamports":18446744073709551615,"timestamp":null}`,
	} {
		if err := s.Apply([]byte(f)); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]Update{
		keyA: {Lamports: 2, Timestamp: `"2026-02-05T12:34:56Z"`, Slot: 9, Seq: 2, Owner: "Own"},
		keyB: {Lamports: 1<<64 - 1, Timestamp: "null"},
	}
	if !reflect.DeepEqual(s.Accounts, want) {
		t.Errorf("got %+v, want %+v", s.Accounts, want)
	}
}

func TestOtherUpdatesAreRefused(t *testing.T) {
	for name, f := range map[string]string{
		"no JSON":         `{"type"`,
		"cut":             told(keyA, 1, 8, 1)[:150],
		"more at the end": told(keyA, 1, 8, 1) + " ",
		"negative":        `{"type":"account_update","pubkey":"` + keyA + `","lamports":-1,"timestamp":null}`,
		"no time":         `{"type":"account_update","pubkey":"` + keyA + `","lamports":1}`,
		"not a truth":     `{"type":"account_update","pubkey":"` + keyA + `","lamports":1,"timestamp":null,"slot":1,"seq":1,"owner":"","executable":no,"commitment":"processed"}`,
	} {
		var s State
		if err := s.Apply([]byte(f)); err == nil {
			t.Errorf("%s: %s is taken: %+v", name, f, s)
		}
	}
}

func TestParseUpdate(t *testing.T) {
	for f, want := range map[string]Update{
		`{"type":"account_update","pubkey":"` + keyA + `","lamports":1234567,"timestamp":null}`: {Owner: keyA, Lamports: 1234567},
		`{"type":"account_update","pubkey":"` + keyB + `","lamports":0,"timestamp":null}`:       {Owner: keyB},
		told(keyA, 7, 8, 1): {Owner: keyA, Lamports: 7},
	} {
		if key, got, ok := ParseUpdate([]byte(f)); string(key) != want.Owner || got != want.Lamports || !ok {
			t.Errorf("ParseUpdate(%s) = %s, %d, %v", f, key, got, ok)
		}
	}
	for _, f := range []string{
		`{"type":"slot_end","slot":8,"seq":2}`,
		`{"type":"account_update","pubkey":"` + keyA + `","lamports":`,
		`{"type":"account_update","pubkey":"` + keyA + `","lamports":12`,
		`{"type":"account_update","pubkey":"` + keyA + `","lamports":,"timestamp":null}`,
		`{"type":"account_update","pubkey":"` + keyA + `","rent":12,"lamports":12,"timestamp":null}`,
		`{"type":"account_update","pubkey":"` + keyB[1:] + `","lamports":12,"timestamp":null}`,
		`{"type":"account_update","pubkey":"` + keyA + `11","lamports":12,"timestamp":null}`,
		`{"type":"account_update","pubkey":"` + keyA,
	} {
		if key, got, ok := ParseUpdate([]byte(f)); ok {
			t.Errorf("ParseUpdate(%s) = %s, %d", f, key, got)
		}
	}
}
