package file

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
)

// What a field of an event line may hold, by kind, as JSON. The lists and objects are made by
// lineText.
const (
	aKey = iota
	aSignature
	aNumber
	aTime
	aByte
	aBool
	anAmount
	someData
	aType
	aStatus
	aCommitment
	aTokenState
	transactionList
	accountList
	keyList
	tokenObject
	mintObject
)

var valuesOf = map[int][]string{
	aKey:        {`"` + testKey(1) + `"`, `"` + testKey(2) + `"`, `"` + ledger.TokenProgram.String() + `"`, `"` + ledger.NativeMint.String() + `"`},
	aSignature:  {`"` + testSignature(1) + `"`},
	aNumber:     {"0", "5", "7", "9", "18446744073709551615"},
	aTime:       {"0", "-5", "9223372036854775807", "-9223372036854775808", "-0"},
	aByte:       {"0", "6", "255"},
	aBool:       {"true", "false"},
	anAmount:    {`"0"`, `"5"`, `"18446744073709551615"`},
	someData:    {`""`, `"QUJD"`, `"QUJDRA=="`, `"\/w=="`, `["QUJD","base64"]`, `"` + strings.Repeat("A", 220) + `"`},
	aType:       {`"block"`, `"accounts"`, `"slot"`},
	aStatus:     {`"confirmed"`, `"finalized"`, `"dead"`},
	aCommitment: {`"processed"`, `"confirmed"`, `"finalized"`},
	aTokenState: {`"initialized"`, `"frozen"`, `"uninitialized"`},
}

// otherValues are of no kind, or of another one.
var otherValues = []string{
	"null", "null", "null", "false", "{}", "[]", "[null]", `""`, `"x"`, "-1", "1.0", "1e3", "01", "18446744073709551616", "256", "tru",
	`"\u0031"`, `"QU\r\nJD"`, "\"QU\rJD\"", "\"\xff\"", `"\"`, `"\q"`, "",
}

type lineField struct {
	name string
	kind int
	must bool // left out seldom
}

var lineFields = []lineField{
	{"type", aType, true}, {"slot", aNumber, true}, {"parent_slot", aNumber, true}, {"blockhash", aKey, true},
	{"previous_blockhash", aKey, false}, {"block_time", aTime, false}, {"block_height", aNumber, false}, {"commitment", aCommitment, false},
	{"transaction_count", aNumber, false}, {"transactions", transactionList, false}, {"accounts", accountList, true}, {"status", aStatus, true},
}

var itemFields = map[int][]lineField{
	transactionList: {{"signature", aSignature, true}, {"success", aBool, false}, {"fee", aNumber, false}, {"accounts", keyList, false}},
	accountList: {
		{"pubkey", aKey, true}, {"lamports", aNumber, true}, {"owner", aKey, true}, {"executable", aBool, false}, {"rent_epoch", aNumber, false},
		{"data", someData, false}, {"token", tokenObject, false}, {"mint", mintObject, false},
	},
	tokenObject: {
		{"mint", aKey, true}, {"owner", aKey, true}, {"amount", anAmount, true}, {"state", aTokenState, true}, {"delegate", aKey, false},
		{"delegated_amount", anAmount, false}, {"close_authority", aKey, false}, {"is_native", aBool, false},
	},
	mintObject: {{"decimals", aByte, true}, {"supply", anAmount, false}, {"scaled", aBool, false}},
}

// lineText writes lines that are nearly right: field by field, in any order, seldom one twice,
// missing, of another kind or of another name.
type lineText struct{ t *rapid.T }

func (l lineText) seldom(what string) bool { return rapid.IntRange(0, 99).Draw(l.t, what) == 37 }

func (l lineText) space() string {
	if !l.seldom("space") {
		return ""
	}
	return rapid.SampledFrom([]string{" ", "\t", "\r", " \n ", "\v", "\x00"}).Draw(l.t, "which space")
}

func (l lineText) object(fields []lineField) string {
	var parts []string
	for _, f := range rapid.Permutation(fields).Draw(l.t, "order") {
		if f.must && l.seldom("missing") || !f.must && rapid.Bool().Draw(l.t, "left out") {
			continue
		}
		for n := 0; n == 0 || l.seldom("twice"); n++ {
			name := f.name
			if l.seldom("another name") {
				name = rapid.SampledFrom([]string{strings.ToUpper(name), name[:1] + "\\u0061", "colour", "", name + "\"", "ſlot"}).Draw(l.t, "name")
			}
			parts = append(parts, l.space()+`"`+name+`"`+l.space()+":"+l.space()+l.value(f.kind)+l.space())
		}
	}
	return "{" + l.joined(parts) + "}"
}

func (l lineText) joined(parts []string) string {
	if l.seldom("a comma too many") {
		parts = append(parts, "")
	}
	return strings.Join(parts, ",")
}

func (l lineText) value(kind int) string {
	switch {
	case l.seldom("another value"):
		return rapid.SampledFrom(otherValues).Draw(l.t, "value")
	case valuesOf[kind] != nil:
		return rapid.SampledFrom(valuesOf[kind]).Draw(l.t, "value")
	case kind == tokenObject || kind == mintObject:
		if rapid.Bool().Draw(l.t, "none") {
			return "false"
		}
		return l.object(itemFields[kind])
	}
	items := make([]string, rapid.IntRange(0, 3).Draw(l.t, "items"))
	for i := range items {
		if kind == keyList {
			items[i] = l.value(aKey)
		} else {
			items[i] = l.object(itemFields[kind])
		}
	}
	return "[" + l.joined(items) + "]"
}

// Lines nobody would write, and lines that are wrong: both ways agree on those that the fast
// one takes.
func TestBothWaysAgreeOnNearlyRightLines(t *testing.T) {
	var p plainDecoder
	taken, left, refused := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			line := []byte(lineText{t}.object(lineFields))
			switch _, err := parse(line); {
			case checkPlain(t, &p, line):
				taken++
			case err == nil:
				left++
			default:
				refused++
			}
		}
	})
	t.Logf("%d lines taken, %d left and good, %d left and refused", taken, left, refused)
	if taken == 0 || left == 0 || refused == 0 {
		t.Errorf("%d lines taken, %d left and good, %d left and refused: one of them was not tried", taken, left, refused)
	}
}
