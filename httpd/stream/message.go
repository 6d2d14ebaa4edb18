package stream

import (
	"encoding/json"
	"errors"
	"strconv"

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

// request is one message of a client. Unknown fields are ignored.
type request struct {
	Type     string          `json:"type"`
	ID       json.RawMessage `json:"id"`
	Pubkeys  []string        `json:"pubkeys"`
	Programs []string        `json:"programs"`
	Wallets  []string        `json:"wallets"`
	Snapshot bool            `json:"snapshot"`
	Extended bool            `json:"extended"`
	Tokens   bool            `json:"tokens"`
	All      bool            `json:"all"`
	FromSeq  json.RawMessage `json:"from_seq"`
}

// names parses the names of a message.
func (r *request) names() (n names, err error) {
	for kind, texts := range [nameKinds][]string{r.Pubkeys, r.Programs, r.Wallets} {
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

// parseRequest reads a message. Its id is good even where the type of another field is wrong.
func parseRequest(text []byte) (r request, id messageID, err error) {
	// An absent list stays empty. One that is null becomes nil, and is refused: it might be meant as
	// nothing where an empty list means everything.
	r.Pubkeys, r.Programs, r.Wallets = []string{}, []string{}, []string{}
	err = json.Unmarshal(text, &r)
	id, ok := parseID(r.ID)
	switch {
	case err != nil || r.Pubkeys == nil || r.Programs == nil || r.Wallets == nil:
		return r, id, errNotMessage
	case !ok:
		return r, id, errID
	}
	return r, id, nil
}

// parseSeq parses a plain decimal: no sign, no leading zeros.
func parseSeq(digits string) (ledger.Seq, bool) {
	n, err := strconv.ParseUint(digits, 10, 64)
	return ledger.Seq(n), err == nil && strconv.FormatUint(n, 10) == digits
}
