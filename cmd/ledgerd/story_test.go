package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mr-tron/base58"
)

// A story is a small ledger with branches, told line by line.

// keyOf returns the key that a name stands for; hashes are made the same way.
func keyOf(name string) string { return toolKey(name).String() }

func signatureOf(block string) string {
	sum := toolKey("transaction in " + block)
	return base58.Encode(append(sum[:], sum[:]...))
}

// storyAccount is a whole account in a line of a story.
type storyAccount struct {
	Pubkey     string `json:"pubkey"`
	Lamports   int    `json:"lamports"`
	Owner      string `json:"owner"`
	Executable bool   `json:"executable"`
	RentEpoch  int    `json:"rent_epoch"`
	Token      any    `json:"token,omitempty"`

	name string
}

// account is a wallet, or whatever its owner makes it; 0 lamports close it.
func account(name string, lamports int, owner string) *storyAccount {
	return &storyAccount{name: name, Pubkey: keyOf(name), Lamports: lamports, Owner: owner, RentEpoch: 7}
}

// tokenAccount is a holding of the one mint of stories.
func tokenAccount(name, wallet string, amount int) *storyAccount {
	a := account(name, 2039280, tokenProgram)
	a.Token = map[string]any{
		"mint": keyOf("mint"), "owner": keyOf(wallet), "amount": fmt.Sprint(amount), "state": "initialized",
		"delegate": nil, "delegated_amount": "0", "close_authority": nil,
	}
	return a
}

const (
	systemProgram = "11111111111111111111111111111111"
	tokenProgram  = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
)

// storyBlock is a block with one transaction.
type storyBlock struct {
	name   string // slot and, where two share it, a letter
	slot   uint64
	parent string // name
	writes []*storyAccount
}

func (b *storyBlock) line(parent *storyBlock) string {
	var accounts []string
	for _, w := range b.writes {
		accounts = append(accounts, w.Pubkey)
	}
	parentSlot := b.slot - 1
	if parent != nil {
		parentSlot = parent.slot
	}
	return jsonLine(map[string]any{
		"type": "block", "slot": b.slot, "parent_slot": parentSlot,
		"blockhash": keyOf(b.name), "previous_blockhash": keyOf(b.parent), "block_time": 1700000000 + b.slot,
		"transactions": []any{map[string]any{"signature": signatureOf(b.name), "success": true, "fee": 5000, "accounts": accounts}},
		"accounts":     b.writes,
	})
}

func statusLine(slot uint64, status, block string) string {
	m := map[string]any{"type": "slot", "slot": slot, "status": status}
	if block != "" {
		m["blockhash"] = keyOf(block)
	}
	return jsonLine(m)
}

func jsonLine(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

// story knows all blocks by name, and what was there before the first.
type story struct {
	base   []*storyAccount
	blocks map[string]*storyBlock
}

// lines returns what a step tells.
func (s *story) lines(tell string) (lines []string) {
	for word := range strings.FieldsSeq(tell) {
		name, status, isStatus := strings.Cut(word, ":")
		b := s.blocks[name]
		switch {
		case !isStatus:
			lines = append(lines, b.line(s.blocks[b.parent]))
		case b != nil:
			lines = append(lines, statusLine(b.slot, status, b.name))
		default:
			slot, _ := strconv.ParseUint(name, 10, 64)
			lines = append(lines, statusLine(slot, status, ""))
		}
	}
	return lines
}

// paths returns all that can be asked of a story, with the names that its keys, hashes and signatures stand for.
func (s *story) paths() (paths []string, names *strings.Replacer) {
	pairs := []string{}
	called := func(key, name string) string {
		pairs = append(pairs, key, name)
		return key
	}
	ask := func(before, key, name, after string) { paths = append(paths, before+called(key, name)+after) }
	writes := s.base
	for _, b := range s.blocks {
		ask("/transaction/", signatureOf(b.name), "tx"+b.name, "")
		paths = append(paths, fmt.Sprint("/blocks/", b.slot))
		called(keyOf(b.name), b.name)
		called(keyOf(b.parent), b.parent)
		writes = append(writes, b.writes...)
	}
	for _, w := range writes {
		ask("/account/", w.Pubkey, w.name, "")
	}
	for _, program := range []string{"P1", "P2"} {
		ask("/accounts/program/", keyOf(program), program, "")
	}
	// The system program also owns the mark of the test.
	ask("/accounts/program/", tokenProgram, "tokens", "")
	for _, wallet := range []string{"w1", "w2"} {
		ask("/account/", keyOf(wallet), wallet, "/tokens")
	}
	called(keyOf("mint"), "mint")
	called(systemProgram, "system")
	paths = append(paths, "/blocks/latest", "/transactions/recent")
	slices.SortFunc(paths, func(x, y string) int {
		r := strings.NewReplacer(pairs...)
		return cmp.Compare(r.Replace(x), r.Replace(y))
	})
	return slices.Compact(paths), strings.NewReplacer(pairs...)
}

var levels = []string{"processed", "confirmed", "finalized"}
