package encode

import (
	"bytes"
	"testing"

	"ledgerd/engine/ledger"
)

// A tag that is linear in its record can be aimed at: with it, the sum of the tags of three records that differ in bits of their own
// is the tag of the sum of them, so that a system of equations finds another record for any tag.
func TestTagsCannotBeAimedAt(t *testing.T) {
	record := bytes.Repeat([]byte{'P'}, 60)
	tagOf := func(changed ...int) []byte {
		b := bytes.Clone(record)
		for _, i := range changed {
			b[i] ^= 1
		}
		return AppendTag(nil, b, 0)
	}
	for _, pair := range [][2]int{{1, 2}, {0, 59}, {17, 43}} {
		sum, both := tagOf(), tagOf(pair[:]...)
		for _, changed := range pair {
			for i, c := range tagOf(changed) {
				sum[i] ^= c
			}
		}
		if bytes.Equal(sum, both) {
			t.Errorf("the tags of the records with the bytes %v changed are linear", pair)
		}
	}
	if len(tagOf()) < len(`W/""`)+128/6 {
		t.Errorf("the tag %s has less than 128 bits: two records of one tag can be found", tagOf())
	}
	if bytes.Equal(AppendTag(nil, record, 0), AppendTag(nil, record, ledger.FieldOwner)) {
		t.Error("the tag does not tell what is unknown")
	}
}

// Replicas and restarts agree on the tag of a record.
func TestTagsStayAsTheyAre(t *testing.T) {
	const want = `W/"EHZZ_z2MkgKLQMj-UqH9RQ"`
	if got := AppendTag(nil, []byte(`{"pubkey":"x"}`), ledger.FieldOwner); string(got) != want {
		t.Errorf("the tag is %s, want %s", got, want)
	}
}
