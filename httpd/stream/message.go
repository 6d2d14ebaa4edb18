package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	Pubkeys  nameList        `json:"pubkeys"`
	Programs nameList        `json:"programs"`
	Wallets  nameList        `json:"wallets"`
	Snapshot bool            `json:"snapshot"`
	Extended bool            `json:"extended"`
	Tokens   bool            `json:"tokens"`
	All      bool            `json:"all"`
	FromSeq  json.RawMessage `json:"from_seq"`
}

// nameList is a list of names. Absent it is empty, null it must not be: it might be meant as
// nothing where an empty list means everything.
type nameList []string

func (l *nameList) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return errNotMessage
	}
	return json.Unmarshal(b, (*[]string)(l))
}

// names parses the names of a message.
func (r *request) names() (n names, err error) {
	for kind, texts := range [nameKinds]nameList{r.Pubkeys, r.Programs, r.Wallets} {
		if err := n.parse(nameKind(kind), texts); err != nil {
			return n, err
		}
	}
	return n, nil
}

var (
	errNotMessage = errors.New("a message is a JSON object with a type of subscribe, unsubscribe, resume or ping")
	errID         = errors.New("id must be an integer or a string of at most 64 bytes")
	errEverything = errors.New("everything is subscribed, and no name to take back: say all")
	errNothing    = errors.New("name pubkeys, programs or wallets, or all")
	errFromSeq    = errors.New("from_seq must be a plain decimal")
)

// parseRequest reads a message. Its id is good even where the rest is not.
func parseRequest(text []byte) (r request, id messageID, err error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' {
		return r, noID, errNotMessage
	}
	if json.Unmarshal(text, &r) != nil {
		// Where only a field's type is wrong the id may still be good.
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
	return fmt.Appendf(b, `{"type":"%s","id":%s`, kind, id)
}

// appendError appends an error. The details are texts of ours, which need no escapes.
func appendError(b []byte, id messageID, details string) []byte {
	return fmt.Appendf(appendReply(b, "error", id), `,"error":"Invalid request parameters","details":"%s"}`, details)
}

// appendCounts appends how many names of each kind are subscribed: of wallets only with withWallets.
func appendCounts(b []byte, n *names, withWallets bool) []byte {
	for kind, name := range kindNames {
		if nameKind(kind) == wallets && !withWallets {
			continue
		}
		b = fmt.Appendf(b, `,"%s":%d`, name, len(n[kind]))
	}
	return b
}

func appendResync(b []byte, id messageID, oldest, newest ledger.Seq) []byte {
	return fmt.Appendf(appendReply(b, "resync_required", id), `,"oldest_seq":%d,"newest_seq":%d}`, oldest, newest)
}
