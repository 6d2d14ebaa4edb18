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

// key returns the parameter that is a pubkey.
func (c *call) key(i int, name string) (ledger.Pubkey, error) { return keyOf(c.param(i), name) }

func keyOf(v *fastjson.Value, name string) (ledger.Pubkey, error) {
	if v == nil || v.Type() != fastjson.TypeString {
		return ledger.Pubkey{}, badParams("%s must be a string", name)
	}
	key, err := ledger.ParsePubkey(v.GetStringBytes())
	if err != nil {
		return key, badParams("%s must be the base58 of exactly 32 bytes", name)
	}
	return key, nil
}

// signature returns a value that is a signature.
func signatureOf(v *fastjson.Value, name string) (sig ledger.Signature, err error) {
	if v == nil || v.Type() != fastjson.TypeString {
		return sig, badParams("%s must be a string", name)
	}
	if sig, err = ledger.ParseSignature(v.GetStringBytes()); err != nil {
		return sig, badParams("%s must be the base58 of exactly 64 bytes", name)
	}
	return sig, nil
}

// slot returns the parameter that is a slot.
func (c *call) slot(i int, name string) (ledger.Slot, error) {
	n, err := numberOf(c.param(i), name)
	return ledger.Slot(n), err
}

// numberOf returns a value that is an integer from 0 to 2^64-1.
func numberOf(v *fastjson.Value, name string) (uint64, error) {
	if v != nil && v.Type() == fastjson.TypeNumber {
		if n, err := v.Uint64(); err == nil {
			return n, nil
		}
	}
	return 0, badParams("%s must be an integer from 0 to 2^64-1", name)
}

// config takes over what the configuration object at i says of commitment and minContextSlot, and returns the object, nil where there
// is none.
func (c *call) config(i int) (*fastjson.Value, error) {
	c.query.Commitment = ledger.Finalized
	v := c.param(i)
	if v == nil {
		return nil, nil
	}
	if v.Type() != fastjson.TypeObject {
		return nil, badParams("the configuration must be an object")
	}
	if level := given(v.Get("commitment")); level != nil {
		var ok bool
		if c.query.Commitment, ok = levels[string(level.GetStringBytes())]; !ok {
			return nil, badParams("commitment must be processed, confirmed or finalized")
		}
	}
	if least := given(v.Get("minContextSlot")); least != nil {
		n, err := numberOf(least, "minContextSlot")
		if err != nil {
			return nil, err
		}
		c.query.MinSlot = ledger.Slot(n)
	}
	return v, nil
}

// about reads the parameters of a method that is about one key, which it calls by a name: the key, and a configuration.
func (c *call) about(name string) (key ledger.Pubkey, config *fastjson.Value, err error) {
	if key, err = c.key(0, name); err == nil {
		config, err = c.config(1)
	}
	return key, config, err
}

// shown is about for a method that shows account data, usually in an encoding.
func (c *call) shown(name, usual string) (key ledger.Pubkey, f form, config *fastjson.Value, err error) {
	if key, config, err = c.about(name); err == nil {
		f, err = formOf(config, usual)
	}
	return key, f, config, err
}

// confirmedAtLeast returns an error if the commitment of the call is processed, which some methods do not take.
func (c *call) confirmedAtLeast() error {
	if c.query.Commitment == ledger.Processed {
		return badParams("this method does not take a commitment below confirmed")
	}
	return nil
}

// member returns a member of a configuration, nil where there is none.
func member(config *fastjson.Value, name string) *fastjson.Value {
	if config == nil {
		return nil
	}
	return given(config.Get(name))
}

// isSet returns a member of a configuration that is true or false, false where it is missing.
func isSet(config *fastjson.Value, name string) (bool, error) {
	switch v := member(config, name); {
	case v == nil:
		return false, nil
	case v.Type() == fastjson.TypeTrue || v.Type() == fastjson.TypeFalse:
		return v.Type() == fastjson.TypeTrue, nil
	}
	return false, badParams("%s must be true or false", name)
}

// word returns a member of a configuration that is one of some words, usual where it is missing.
func word(config *fastjson.Value, name, usual string, words ...string) (string, error) {
	v := member(config, name)
	if v == nil {
		return usual, nil
	}
	for _, w := range words {
		if v.Type() == fastjson.TypeString && string(v.GetStringBytes()) == w {
			return w, nil
		}
	}
	return "", badParams("%s must be one of %s", name, strings.Join(words, ", "))
}
