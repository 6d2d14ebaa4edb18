package rpc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"ledgerd/engine/ledger"
)

// shapes is testdata/schema.json: of each method what it takes and answers, and of each notification what it tells.
type shapes struct {
	testing.TB
	Calls map[string]struct {
		Socket bool                           // it is made over a WebSocket
		Usual  string                         // encoding
		Params []map[string][]json.RawMessage // good ones, by their kind
		Value  json.RawMessage                // what the context comes with; nil: there is none
	}
	Bad       map[string][]string             // parameters, by their kind
	compilers map[string]*jsonschema.Compiler // by the encoding that data is in
}

func readShapes(t *testing.T) *shapes {
	s := &shapes{TB: t, compilers: make(map[string]*jsonschema.Compiler)}
	must(t, json.Unmarshal(readFile(t, "testdata/schema.json"), s))
	return s
}

// check holds a value against the schema at a path, where data is in an encoding.
func (s *shapes) check(path, encoding string, value json.RawMessage, what string) {
	s.Helper()
	c := s.compilers[encoding]
	if c == nil {
		text := strings.ReplaceAll(string(readFile(s, "testdata/schema.json")), `"#/$defs/data"`, `"#/$defs/data/`+cmp.Or(encoding, asBinary)+`"`)
		whole, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		must(s, err)
		c = jsonschema.NewCompiler()
		must(s, c.AddResource("schema.json", whole))
		s.compilers[encoding] = c
	}
	got, err := jsonschema.UnmarshalJSON(strings.NewReader(string(value)))
	must(s, err)
	if err := c.MustCompile("schema.json#/" + path).Validate(got); err != nil {
		s.Errorf("%s: %.300s is not as it should be: %v", what, value, err)
	}
}

// message is an answer or a notification.
type message struct {
	Method        string
	Result, Error json.RawMessage
	Params        struct {
		Result       json.RawMessage
		Subscription int
	}
}

var anEncoding, aCommitment = regexp.MustCompile(`"encoding": ?"([^"]+)"`), regexp.MustCompile(`"commitment":"([^"]+)"`)

// encodingOf returns the encoding that a call asks for.
func (s *shapes) encodingOf(method, params string) string {
	if m := anEncoding.FindStringSubmatch(params); m != nil && s.Calls[method].Usual != "" {
		return m[1]
	}
	return s.Calls[method].Usual
}

// answer holds an answer against the schema of its method, and returns the code of an error, or the slot of the context.
func (s *shapes) answer(method, params, text string) (code int, slot ledger.Slot) {
	s.Helper()
	what, path := method+" "+params, "calls/"+method+"/result"
	var a message
	must(s, json.Unmarshal([]byte(text), &a))
	if a.Error != nil {
		s.check("$defs/error", "", a.Error, what)
		var e struct{ Code int }
		must(s, json.Unmarshal(a.Error, &e))
		return e.Code, 0
	}
	if s.Calls[method].Value != nil || !s.Calls[method].Socket && strings.Contains(params, `"withContext":true`) {
		s.check("$defs/inContext", "", a.Result, what)
		var in struct {
			Context struct{ Slot ledger.Slot }
			Value   json.RawMessage
		}
		must(s, json.Unmarshal(a.Result, &in))
		a.Result, slot = in.Value, in.Context.Slot
		if s.Calls[method].Value != nil {
			path = "calls/" + method + "/value"
		}
	}
	s.check(path, s.encodingOf(method, params), a.Result, what)
	return 0, slot
}

// The answers and notifications that are held, of nodes of every kind, are as their schemas say.
func TestWhatIsHeldHasItsShape(t *testing.T) {
	s := readShapes(t)
	said, heard := regexp.MustCompile(`^\w?> (\w+) (.*)$`), regexp.MustCompile(`^(\w?)< (["{].*)$`)
	for _, file := range []string{"testdata/calls.txt", "testdata/told.txt"} {
		method, params := "", ""
		encodings := make(map[int]string) // by the numbers of subscriptions
		for line := range strings.Lines(string(readFile(t, file))) {
			if m := said.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				method, params = m[1], m[2]
			}
			m := heard.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				continue
			}
			text := m[2]
			if m[1] == "" { // an answer without what is the same in all
				text = "{" + text + "}"
			}
			var told message
			must(t, json.Unmarshal([]byte(text), &told))
			if told.Method != "" {
				s.check("notifications/"+told.Method, encodings[told.Params.Subscription], told.Params.Result, text)
				continue
			}
			s.answer(method, params, text)
			var number int
			if json.Unmarshal(told.Result, &number) == nil {
				encodings[number] = s.encodingOf(method, params)
			}
		}
	}
}

// levelSlots are where the fake ledger stands.
var levelSlots = map[string]ledger.Slot{"processed": 30, "confirmed": 28, "finalized": 20}

// configKinds are those of configurations, with whether they take the processed level, and encodings.
var configKinds = map[string]struct{ processed, encodings bool }{
	"config": {true, false}, "deep": {false, false}, "details": {false, false}, "encoded": {true, true}, "subscribed": {true, true},
}

// with returns an object with one more member.
func with(object json.RawMessage, name, value string) json.RawMessage {
	if inner := strings.Trim(string(object), "{} "); inner == "" || inner == "null" {
		return json.RawMessage(fmt.Sprintf(`{%q:%s}`, name, value))
	}
	return json.RawMessage(fmt.Sprintf(`{%q:%s,`, name, value) + string(object[1:]))
}

// variants returns a configuration at every commitment and in every encoding that its kind may have.
func variants(kind string, config json.RawMessage) []json.RawMessage {
	all := []json.RawMessage{config}
	takes, is := configKinds[kind]
	for level := range levelSlots {
		if is && (takes.processed || level != "processed") {
			all = append(all, with(config, "commitment", strconv.Quote(level)))
		}
	}
	if takes.encodings {
		for _, one := range all {
			for _, encoding := range []string{asBinary, asBase58, asBase64, asZstd, asParsed} {
				all = append(all, with(one, "encoding", strconv.Quote(encoding)))
			}
		}
	}
	return all
}

// sweep asks a method for all that it may be asked for, and with what is wrong at each place.
func (s *shapes) sweep(method string, ask func(params string) string) {
	s.Helper()
	call := s.Calls[method]
	var good []json.RawMessage
	for _, p := range call.Params {
		for _, examples := range p {
			good = append(good, append(examples, json.RawMessage("null"))[0])
		}
	}
	answered := func(params []json.RawMessage) (string, int, ledger.Slot) {
		var texts []string
		for _, one := range params {
			texts = append(texts, string(one))
		}
		text := "[" + strings.Join(texts, ",") + "]"
		code, slot := s.answer(method, text, ask(text))
		return text, code, slot
	}
	isWrong := func(params []json.RawMessage) {
		if text, code, _ := answered(params); code != codeParams {
			s.Errorf("%s %s is answered with the code %d", method, text, code)
		}
	}
	isWrong(append(slices.Clone(good), json.RawMessage("1")))
	for i, p := range call.Params {
		for kind, examples := range p {
			params := slices.Clone(good)
			for _, example := range examples {
				for _, params[i] = range variants(kind, example) {
					text, code, slot := answered(params)
					level := "finalized"
					if m := aCommitment.FindStringSubmatch(text); m != nil {
						level = m[1]
					}
					if code == codeParams || slot != 0 && slot != levelSlots[level] && kind != "signatures" && kind != "flags" {
						s.Errorf("%s %s is answered with the code %d at slot %d", method, text, code, slot)
					}
				}
				if _, is := configKinds[kind]; !is {
					continue
				}
				params[i] = example
				_, plain, _ := answered(params)
				params[i] = with(example, "minContextSlot", "21")
				if text, code, _ := answered(params); code != codeMinContextSlot && (code != plain || code == 0) { // which another node has to answer
					s.Errorf("%s %s is answered with the code %d", method, text, code)
				}
			}
			for _, bad := range s.Bad[kind] {
				params[i] = json.RawMessage(bad)
				isWrong(params)
				if bad == "null" {
					isWrong(good[:i])
				}
			}
		}
	}
}

// Every method answers as its schema says, at the slot of its commitment, for every commitment and encoding, and what is wrong with a parameter is -32602.
func TestEveryAnswerHasItsShape(t *testing.T) {
	s := readShapes(t)
	_, r := serveHub(t, &settings{fakeLedger: newFakeLedger(), door: Config{IndexMints: true}})
	names := names()
	post := func(method string) func(string) string {
		return func(params string) string {
			return r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, names.Replace(params)))
		}
	}
	for _, m := range r.door.methods[:len(r.door.methods)-1] {
		if _, described := s.Calls[m.name]; !described {
			t.Errorf("schema.json does not describe %s", m.name)
		}
		s.sweep(m.name, post(m.name))
	}
	for name := range subscriptions {
		if !s.Calls[name].Socket {
			t.Errorf("schema.json does not describe %s", name)
		}
		var c client
		asked := 0
		s.sweep(name, func(params string) string {
			if asked%90 == 0 { // a socket may say some things at once
				if c.Conn != nil {
					_ = c.Close()
				}
				c = r.dial()
			}
			asked++
			return c.ask(name, params)
		})
		_ = c.Close()
	}
}
