package rpc

import (
	"strings"

	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
)

// levels are the names of commitments. The specification has the first three; Agave still takes the others, which old clients send.
var levels = map[string]ledger.Commitment{
	"processed": ledger.Processed, "confirmed": ledger.Confirmed, "finalized": ledger.Finalized,
	"recent": ledger.Processed, "single": ledger.Confirmed, "singleGossip": ledger.Confirmed, "root": ledger.Finalized, "max": ledger.Finalized,
}

// param returns a parameter, nil where it is missing or null.
func (c *call) param(i int) *fastjson.Value {
	if i >= len(c.params) {
		return nil
	}
	return given(c.params[i])
}

// given returns v, nil if it is null.
func given(v *fastjson.Value) *fastjson.Value {
	if v == nil || v.Type() == fastjson.TypeNull {
		return nil
	}
	return v
}

// bad notes what is wrong with the parameters of the call, if nothing was before. What is read after that is worth nothing: a method looks at
// c.wrong when it has read all, before it asks the ledger; newest, accountsAt, mint and heldMint do so for it.
func (c *call) bad(format string, values ...any) {
	if c.wrong == nil {
		c.wrong = badParams(format, values...)
	}
}

// text returns a value that is a string.
func (c *call) text(v *fastjson.Value, name string) []byte {
	if v == nil || v.Type() != fastjson.TypeString {
		c.bad("%s must be a string", name)
		return nil
	}
	return v.GetStringBytes()
}

// parsed returns a string as a parser of base58 reads it, which takes so many bytes.
func parsed[T any](c *call, v *fastjson.Value, name string, bytes int, parse func([]byte) (T, error)) T {
	one, err := parse(c.text(v, name))
	if err != nil {
		c.bad("%s must be the base58 of exactly %d bytes", name, bytes)
	}
	return one
}

func (c *call) key(v *fastjson.Value, name string) ledger.Pubkey {
	return parsed(c, v, name, 32, ledger.ParsePubkey[[]byte])
}

func (c *call) signature(v *fastjson.Value, name string) ledger.Signature {
	return parsed(c, v, name, 64, ledger.ParseSignature[[]byte])
}

// list returns the values of an array, so many at most.
func (c *call) list(v *fastjson.Value, most int, name string) []*fastjson.Value {
	if v == nil || v.Type() != fastjson.TypeArray {
		c.bad("%s must be an array", name)
		return nil
	}
	all, _ := v.Array()
	if len(all) > most {
		c.bad("there may be %d %s at most", most, name)
		return nil
	}
	return all
}

// slot returns the parameter that is a slot.
func (c *call) slot(i int, name string) ledger.Slot { return ledger.Slot(c.number(c.param(i), name)) }

// number returns a value that is an integer from 0 to 2^64-1.
func (c *call) number(v *fastjson.Value, name string) uint64 {
	if v != nil && v.Type() == fastjson.TypeNumber {
		if n, err := v.Uint64(); err == nil {
			return n
		}
	}
	c.bad("%s must be an integer from 0 to 2^64-1", name)
	return 0
}

// config takes over what the configuration object at i says of commitment and minContextSlot, and returns the object, nil where there
// is none.
func (c *call) config(i int) *fastjson.Value {
	c.query.Commitment = ledger.Finalized
	v := c.param(i)
	if v != nil && v.Type() != fastjson.TypeObject {
		c.bad("the configuration must be an object")
		return nil
	}
	if level := member(v, "commitment"); level != nil {
		var ok bool
		if c.query.Commitment, ok = levels[string(level.GetStringBytes())]; !ok {
			c.bad("commitment must be processed, confirmed or finalized")
		}
	}
	if least := member(v, "minContextSlot"); least != nil {
		c.query.MinSlot = ledger.Slot(c.number(least, "minContextSlot"))
	}
	return v
}

// about reads the parameters of a method that is about one key, which it calls by a name: the key, and a configuration.
func (c *call) about(name string) (ledger.Pubkey, *fastjson.Value) {
	return c.key(c.param(0), name), c.config(1)
}

// shown is about for a method that shows account data, usually in an encoding.
func (c *call) shown(name, usual string) (key ledger.Pubkey, f form, config *fastjson.Value) {
	key, config = c.about(name)
	return key, c.readForm(config, usual), config
}

// confirmedAtLeast refuses the processed commitment, which some methods do not take.
func (c *call) confirmedAtLeast() {
	if c.query.Commitment == ledger.Processed {
		c.bad("this method does not take a commitment below confirmed")
	}
}

// member returns a member of a configuration, nil where there is none.
func member(config *fastjson.Value, name string) *fastjson.Value {
	if config == nil {
		return nil
	}
	return given(config.Get(name))
}

// isSet returns a member of a configuration that is true or false, false where it is missing.
func (c *call) isSet(config *fastjson.Value, name string) bool {
	v := member(config, name)
	if v != nil && v.Type() != fastjson.TypeTrue && v.Type() != fastjson.TypeFalse {
		c.bad("%s must be true or false", name)
	}
	return v != nil && v.Type() == fastjson.TypeTrue
}

// word returns a value that is one of some words, usual where it is missing.
func (c *call) word(v *fastjson.Value, name, usual string, words ...string) string {
	if v == nil {
		return usual
	}
	for _, w := range words {
		if v.Type() == fastjson.TypeString && string(v.GetStringBytes()) == w {
			return w
		}
	}
	c.bad("%s must be one of %s", name, strings.Join(words, ", "))
	return usual
}
