package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger/ledgertest"
)

// asyncAPI is the document of the messages, as far as tests read it.
type asyncAPI struct {
	Channels struct {
		Accounts struct {
			Bindings struct{ WS struct{ Query property } }
		}
	}
	Operations map[string]struct {
		Action   string
		Messages []reference
		Reply    struct{ Messages []reference }
	}
	Components struct {
		Messages map[string]struct {
			Payload  property
			Examples []struct{ Payload json.RawMessage }
		}
		Schemas map[string]any
	}
	payloads map[string]*jsonschema.Schema // of the messages
}

type reference struct {
	Ref string `json:"$ref"`
}

type property struct{ Properties map[string]map[string]any }

// messagesOf returns the names of the messages that references lead to.
func messagesOf(references []reference) (names []string) {
	for _, r := range references {
		names = append(names, path.Base(r.Ref))
	}
	return names
}

var asyncDocument = sync.OnceValue(func() (d asyncAPI) {
	content, err := os.ReadFile("../console/asyncapi.json")
	whole, invalid := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7) // which AsyncAPI builds on
	if err := errors.Join(err, invalid, json.Unmarshal(content, &d), c.AddResource("asyncapi.json", whole)); err != nil {
		panic(err)
	}
	d.payloads = map[string]*jsonschema.Schema{}
	for name := range d.Components.Messages {
		d.payloads[name] = c.MustCompile("asyncapi.json#/components/messages/" + name + "/payload")
	}
	return d
})

// checkDescribed checks a message against the document, and returns its type.
func checkDescribed(t testing.TB, message string) (name string) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(message))
	must(t, err)
	fields, _ := value.(map[string]any)
	name, _ = fields["type"].(string)
	if schema := asyncDocument().payloads[name]; schema == nil {
		t.Errorf("asyncapi.json does not describe %s", message)
	} else if err := schema.Validate(value); err != nil {
		t.Errorf("%s is not as asyncapi.json says: %v", message, err)
	}
	return name
}

// The AsyncAPI document describes each message that either side knows; its examples are messages that are sent and taken.
func TestAsyncAPIDescribesEveryMessage(t *testing.T) {
	document := asyncDocument()
	described := map[string][]string{}
	for _, operation := range document.Operations {
		described[operation.Action] = append(described[operation.Action], messagesOf(operation.Messages)...)
		described["send"] = append(described["send"], messagesOf(operation.Reply.Messages)...)
	}
	sources, err := filepath.Glob("*.go")
	must(t, err)
	var sent []string
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		for _, found := range regexp.MustCompile(`\{"type":"(\w+)"`).FindAllStringSubmatch(string(readFile(t, source)), -1) {
			sent = append(sent, found[1])
		}
	}
	for action, known := range map[string][]string{"send": sent, "receive": slices.Clone(messageTypes)} {
		slices.Sort(known)
		slices.Sort(described[action])
		ledgertest.Equal(t, slices.Compact(described[action]), slices.Compact(known), "to %s: the document beside the program", action)
	}
	for name, message := range document.Components.Messages {
		if len(message.Examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for _, example := range message.Examples {
			ledgertest.Equal(t, checkDescribed(t, string(example.Payload)), name, "the kind of an example")
		}
	}
	inMemory(t, nil, func(n *node) {
		n.script.block(1, account(1, 1, programA))
		for name, operation := range document.Operations {
			if operation.Action != "receive" {
				continue
			}
			for _, example := range document.Components.Messages[messagesOf(operation.Messages)[0]].Examples {
				c := n.dial("?mode=none")
				c.send("%s", example.Payload)
				for _, answer := range c.settle() {
					if got := checkDescribed(t, answer); got == "error" || !slices.Contains(messagesOf(operation.Reply.Messages), got) {
						t.Errorf("%s is answered with %s", name, answer)
					}
				}
			}
		}
	})
}

// What both documents describe they describe in the same way: the query of a handshake, levels, accounts. No parameter of
// the query is unknown here, and every value that it may have is taken.
func TestAsyncAPIAgreesWithOpenAPI(t *testing.T) {
	document := asyncDocument()
	content := readFile(t, "../openapi.json")
	var open struct {
		Paths map[string]struct {
			Get struct{ Parameters []reference }
		}
		Components struct {
			Parameters map[string]struct {
				Name, Description string
				Schema            map[string]any
			}
			Schemas map[string]any
		}
	}
	must(t, json.Unmarshal(content, &open))
	want := map[string]map[string]any{}
	for _, r := range open.Paths["/ws/accounts"].Get.Parameters {
		p := open.Components.Parameters[path.Base(r.Ref)]
		p.Schema["description"] = p.Description
		want[p.Name] = p.Schema
		values, _ := p.Schema["enum"].([]any)
		switch {
		case p.Name == "commitment":
			values = []any{"processed", "confirmed", "finalized"}
		case p.Schema["type"] == "integer":
			values = []any{"0", "18446744073709551615"}
		case p.Schema["type"] == "array":
			values = []any{strings.Repeat("1", 32)}
		}
		for _, value := range values {
			args := new(fasthttp.Args)
			args.Set(p.Name, value.(string))
			if _, err := parseQuery(args); err != nil {
				t.Errorf("%s=%s: %v", p.Name, value, err)
			}
		}
	}
	if got := document.Channels.Accounts.Bindings.WS.Query.Properties; !reflect.DeepEqual(got, want) || len(got) != 10 {
		t.Errorf("the query is\n%v, in openapi.json\n%v", got, want)
	}
	ledgertest.Equal(t, document.Components.Schemas["Commitment"], open.Components.Schemas["Commitment"], "a commitment, beside openapi.json")
	account := open.Components.Schemas["Account"].(map[string]any)["properties"].(map[string]any)
	update := document.Components.Messages["account_update"].Payload.Properties
	for name, field := range account {
		told, ok := update[name]
		if !ok || name == "token" || name == "space" || name == "data" { // whose null the two languages write differently
			continue
		}
		if references, is := told["allOf"].([]any); is {
			told, _ = document.Components.Schemas[path.Base(references[0].(map[string]any)["$ref"].(string))].(map[string]any)
		}
		told, field := maps.Clone(told), maps.Clone(field.(map[string]any))
		delete(told, "description")
		delete(field, "description")
		ledgertest.Equal(t, told, field, "%s of an update, beside openapi.json", name)
	}
}
