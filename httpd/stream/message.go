package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

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
	if raw[0] == '"' {
		var s string
		if len(raw) > 2+6*maxIDBytes || json.Unmarshal(raw, &s) != nil || len(s) > maxIDBytes || !utf8.ValidString(s) {
			return noID, false
		}
		written, err := json.Marshal(s)
		return messageID(written), err == nil
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return messageID(strconv.FormatInt(n, 10)), true
	}
	if n, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		return messageID(strconv.FormatUint(n, 10)), true
	}
	return noID, false
}

// request is one message of a client. Unknown fields are ignored.
type request struct {
	Type     string          `json:"type"`
	ID       json.RawMessage `json:"id"`
	Pubkeys  names           `json:"pubkeys"`
	Programs names           `json:"programs"`
	Snapshot bool            `json:"snapshot"`
	Extended bool            `json:"extended"`
	All      bool            `json:"all"`
	FromSeq  json.RawMessage `json:"from_seq"`
}

// names is a list of keys. Absent it is empty, null it must not be: it might be meant as
// nothing where an empty list means everything.
type names []string

func (n *names) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return errNotMessage
	}
	return json.Unmarshal(b, (*[]string)(n))
}

var (
	errNotMessage = errors.New("a message is a JSON object with a type of subscribe, unsubscribe, resume or ping")
	errID         = errors.New("id must be an integer or a string of at most 64 bytes")
	errPubkeys    = errors.New("pubkeys must be a list of base58 public keys")
	errPrograms   = errors.New("programs must be a list of base58 public keys")
	errEverything = errors.New("everything is subscribed, and no name to take back: say all")
	errNothing    = errors.New("name pubkeys or programs, or all")
	errFromSeq    = errors.New("from_seq must be a plain decimal")
)

// parseRequest reads a message. Its id is good even where the rest is not.
func parseRequest(text []byte) (r request, id messageID, err error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' {
		return r, noID, errNotMessage
	}
	if json.Unmarshal(text, &r) != nil {
		// Where only a field's type is wrong the id may still be told.
		var named struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(text, &named) == nil {
			id, _ = parseID(named.ID)
			return r, id, errNotMessage
		}
		return r, noID, errNotMessage
	}
	id, ok := parseID(r.ID)
	if !ok {
		return r, noID, errID
	}
	return r, id, nil
}

// keys parses the names of a message: in order, each once.
func (r *request) keys() (pubkeys, programs []ledger.Pubkey, err error) {
	if pubkeys, err = parseKeys(r.Pubkeys); err != nil {
		return nil, nil, errPubkeys
	}
	if programs, err = parseKeys(r.Programs); err != nil {
		return nil, nil, errPrograms
	}
	return eachOnce(pubkeys), eachOnce(programs), nil
}

func eachOnce(keys []ledger.Pubkey) []ledger.Pubkey {
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	return slices.Compact(keys)
}

func parseKeys(texts []string) ([]ledger.Pubkey, error) {
	keys := make([]ledger.Pubkey, len(texts))
	for i, t := range texts {
		k, err := ledger.ParsePubkey(t)
		if err != nil {
			return nil, err
		}
		keys[i] = k
	}
	return keys, nil
}

// parseSeq parses a plain decimal: no sign, no leading zeros.
func parseSeq(digits []byte) (ledger.Seq, bool) {
	if len(digits) == 0 || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return ledger.Seq(n), err == nil && digits[0] != '+'
}

// appendReply appends {"type":TYPE,"id":ID and leaves the object open.
func appendReply(b []byte, kind string, id messageID) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, kind...)
	b = append(b, `","id":`...)
	return append(b, id...)
}

func appendError(b []byte, id messageID, details string) []byte {
	b = appendReply(b, "error", id)
	b = append(b, `,"error":"Invalid request parameters","details":"`...)
	b = append(b, details...) // texts of ours, which need no escapes
	return append(b, `"}`...)
}

// appendCounts appends how many names are subscribed.
func appendCounts(b []byte, w *wants) []byte {
	b = append(b, `,"pubkeys":`...)
	b = strconv.AppendInt(b, int64(w.pubkeys.len()), 10)
	b = append(b, `,"programs":`...)
	return strconv.AppendInt(b, int64(w.programs.len()), 10)
}

func appendResync(b []byte, id messageID, oldest, newest ledger.Seq) []byte {
	b = appendReply(b, "resync_required", id)
	b = append(b, `,"oldest_seq":`...)
	b = strconv.AppendUint(b, uint64(oldest), 10)
	b = append(b, `,"newest_seq":`...)
	b = strconv.AppendUint(b, uint64(newest), 10)
	return append(b, '}')
}
