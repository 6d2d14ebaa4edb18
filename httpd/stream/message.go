package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
)

// messageID is what a client put in "id", as it is written back: an integer, a short
// string, or null.
type messageID string

const noID messageID = "null"

// maxIDBytes bounds what is echoed of an id.
const maxIDBytes = 64

// parseID returns how an id is written back; false if it is none that can be.
func parseID(raw json.RawMessage) (messageID, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return noID, true
	}
	for _, value := range []any{new(int64), new(uint64), new(string)} {
		if json.Unmarshal(raw, value) != nil {
			continue
		}
		if s, is := value.(*string); is && len(*s) > maxIDBytes {
			break
		}
		written, err := json.Marshal(value)
		return messageID(written), err == nil
	}
	return noID, false
}

// request is what a client asks for: in a message, or in the query of its handshake.
type request struct {
	kind          string // the type of the message, or connect
	names         names
	snapshot, all bool
	form          form // what it adds to that of updates
	where         *ledger.DataFilter
	from          ledger.Opt[ledger.Seq]
	// In a handshake only: whether the client wants nothing but what it names, and what happens if it is slow.
	level             ledger.Commitment
	narrow, conflates bool
}

// connect is the kind of a handshake.
const connect = "connect"

// field is a field that messages may have beside their type and id, or a parameter of a handshake.
type field struct {
	name string
	of   []string // the types of these messages
	must string   // what it must be
	set  func(r *request, raw string) bool
}

const mustBeKeys, mustBeSeq, mustBeBool = "a list of base58 public keys", "a plain decimal number below 2^64", "true or false"

// fields are all there are.
var fields = []field{
	{"pubkeys", []string{connect, "subscribe", "unsubscribe"}, mustBeKeys, setNames(pubkeys)},
	{"programs", []string{connect, "subscribe", "unsubscribe"}, mustBeKeys, setNames(programs)},
	{"wallets", []string{connect, "subscribe", "unsubscribe"}, mustBeKeys, setNames(wallets)},
	{"mode", []string{connect}, "none", func(r *request, raw string) bool {
		r.narrow = true
		return raw == "none"
	}},
	{"snapshot", []string{"subscribe"}, mustBeBool, func(r *request, raw string) bool { return parseBool(&r.snapshot, raw) }},
	{"extended", []string{connect, "subscribe"}, mustBeBool, setForm(extended)},
	{"tokens", []string{connect, "subscribe"}, mustBeBool, setForm(withTokens &^ extended)},
	{"data", []string{connect, "subscribe"}, mustBeBool, setForm(withData &^ extended)},
	{"data_size", []string{"subscribe"}, mustBeSeq, func(r *request, raw string) bool { return parseNumber(&r.filter().Size, raw) }},
	{"memcmp", []string{"subscribe"}, mustBeParts, (*request).parseParts},
	{"all", []string{"unsubscribe"}, mustBeBool, func(r *request, raw string) bool { return parseBool(&r.all, raw) }},
	{"from_seq", []string{"resume"}, mustBeSeq, func(r *request, raw string) bool { return parseNumber(&r.from, raw) }},
	{"commitment", []string{connect}, "processed, confirmed or finalized", func(r *request, raw string) (ok bool) {
		r.level, ok = ledger.ParseCommitment([]byte(raw))
		return ok
	}},
	{"resume_from", []string{connect}, mustBeSeq, func(r *request, raw string) bool { return parseNumber(&r.from, raw) }},
	{"overflow", []string{connect}, "disconnect or conflate", func(r *request, raw string) bool {
		r.conflates = raw == "conflate"
		return r.conflates || raw == "disconnect"
	}},
}

const mustBeParts = "a list of 1 to 4 objects of offset, a plain decimal number, and bytes, the base58 of 1 to 128 bytes"

// filter returns the filter of the message's programs.
func (r *request) filter() *ledger.DataFilter {
	if r.where == nil {
		r.where = new(ledger.DataFilter)
	}
	return r.where
}

// parseParts reads what memcmp says.
func (r *request) parseParts(raw string) bool {
	var parts []json.RawMessage
	if json.Unmarshal([]byte(raw), &parts) != nil || len(parts) == 0 || len(parts) > ledger.MaxDataParts {
		return false
	}
	for _, part := range parts {
		var sent map[string]json.RawMessage
		var offset ledger.Opt[uint64]
		var text string
		if json.Unmarshal(part, &sent) != nil || len(sent) != 2 || !isOnce(part, len(sent)) {
			return false
		}
		if !parseNumber(&offset, string(sent["offset"])) || json.Unmarshal(sent["bytes"], &text) != nil {
			return false
		}
		part, ok := ledger.ParseDataPart(offset.Value, text)
		if !ok {
			return false
		}
		r.filter().Parts = append(r.filter().Parts, part)
	}
	return true
}

// isOnce reports whether a JSON object with that many different member names has each of them once: a map holds only the last member
// of a name.
func isOnce(raw []byte, members int) bool {
	v, err := fastjson.ParseBytes(raw)
	return err == nil && v.GetObject().Len() == members
}

// messageTypes are those that a client may send.
var messageTypes = []string{"subscribe", "unsubscribe", "resume", "ping"}

func setForm(more form) func(*request, string) bool {
	return func(r *request, raw string) bool {
		var on bool
		ok := parseBool(&on, raw)
		if on {
			r.form |= more
		}
		return ok
	}
}

func setNames(kind nameKind) func(*request, string) bool {
	return func(r *request, raw string) bool {
		var texts []string
		if r.kind == connect {
			texts, r.narrow = strings.Split(raw, ","), true
		} else if json.Unmarshal([]byte(raw), &texts) != nil {
			return false
		}
		// A list that is null is refused: it might be meant as nothing where an empty list means everything.
		return texts != nil && r.names.parse(kind, texts)
	}
}

var (
	errNotMessage = errors.New("a message is a JSON object with a type of " + enumerate(messageTypes, "or"))
	errID         = errors.New("id must be an integer or a string of at most 64 bytes")
	errEverything = errors.New("everything is subscribed, and no name to take back: say all")
	errNothing    = errors.New("name pubkeys, programs or wallets, or all")
	errNoPrograms = errors.New("data_size and memcmp are for programs: name some")
	errTwice      = errors.New("a message with data_size or memcmp has each field once")
	errFromSeq    = errors.New("from_seq must be " + mustBeSeq)
)

// parseRequest reads a message. Its id is good even where another field is wrong.
func parseRequest(text []byte) (r request, id messageID, err error) {
	var sent map[string]json.RawMessage // whose names are as they were sent, where those of a struct would match in any case
	if json.Unmarshal(text, &sent) != nil {
		return r, noID, errNotMessage
	}
	members := len(sent)
	id, ok := parseID(sent["id"])
	_ = json.Unmarshal(sent["type"], &r.kind) // or it stays empty
	switch {
	case !slices.Contains(messageTypes, r.kind):
		return r, id, errNotMessage
	case !ok:
		return r, id, errID
	}
	delete(sent, "id")
	delete(sent, "type")
	if err := take(&r, sent, "field", "type", "id"); err != nil {
		return r, id, err
	}
	if r.where != nil && !isOnce(text, members) {
		return r, id, errTwice
	}
	return r, id, nil
}

// take sets the fields of a request that were sent, and returns an error if one is not what it must be, or is none.
func take[T string | json.RawMessage](r *request, sent map[string]T, what string, known ...string) error {
	for _, f := range fields {
		if !slices.Contains(f.of, r.kind) {
			continue
		}
		known = append(known, f.name)
		switch raw, given := sent[f.name]; {
		case given && len(raw) == 0:
			return fmt.Errorf("%s must be given once and not be empty", f.name)
		case given && !f.set(r, string(raw)):
			return fmt.Errorf("%s must be %s", f.name, f.must)
		}
		delete(sent, f.name)
	}
	if len(sent) > 0 {
		return errUnknown(what, slices.Min(slices.Collect(maps.Keys(sent))), known)
	}
	return nil
}

// errUnknown says that a name is unknown, and lists the known ones. It repeats the name only if that is a word like ours.
func errUnknown(what, name string, known []string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	if name != "" && len(name) <= 32 && strings.Trim(name, letters) == "" {
		what += " " + name
	}
	return fmt.Errorf("unknown %s: there are %s", what, enumerate(known, "and"))
}

// enumerate lists words: "a, b and c".
func enumerate(words []string, and string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + and + " " + words[last]
}

func parseBool(to *bool, text string) bool {
	*to = text == "true"
	return *to || text == "false"
}

// parseNumber parses a plain decimal: no sign, no leading zeros.
func parseNumber[T ~uint64](to *ledger.Opt[T], digits string) bool {
	n, err := strconv.ParseUint(digits, 10, 64)
	*to = ledger.Some(T(n))
	return err == nil && strconv.FormatUint(n, 10) == digits
}
