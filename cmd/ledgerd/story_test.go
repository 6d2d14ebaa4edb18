package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mr-tron/base58"
)

// A story is a small ledger with branches, told line by line. What must be seen of it is
// computed here with plain maps: the state of a chain is what its blocks write, one
// after the other.

// keyOf returns the key that a name stands for; hashes are made the same way.
func keyOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base58.Encode(sum[:])
}

func signatureOf(block string) string {
	sum := sha256.Sum256([]byte("transaction in " + block))
	return base58.Encode(append(sum[:], sum[:]...))
}

// storyAccount is a whole account in a line of a story.
type storyAccount struct {
	Pubkey     string      `json:"pubkey"`
	Lamports   int         `json:"lamports"`
	Owner      string      `json:"owner"`
	Executable bool        `json:"executable"`
	RentEpoch  int         `json:"rent_epoch"`
	Token      *storyToken `json:"token,omitempty"`
}

type storyToken struct {
	Mint            string  `json:"mint"`
	Owner           string  `json:"owner"`
	Amount          string  `json:"amount"`
	State           string  `json:"state"`
	Delegate        *string `json:"delegate"`
	DelegatedAmount string  `json:"delegated_amount"`
	CloseAuthority  *string `json:"close_authority"`
}

func (a *storyAccount) record() accountRecord {
	return accountRecord{
		Pubkey: a.Pubkey, Lamports: json.Number(fmt.Sprint(a.Lamports)), Owner: a.Owner,
		Executable: a.Executable, RentEpoch: json.Number(fmt.Sprint(a.RentEpoch)),
	}
}

// account is a wallet, or whatever its owner makes it; 0 lamports close it.
func account(name string, lamports int, owner string) *storyAccount {
	return &storyAccount{Pubkey: keyOf(name), Lamports: lamports, Owner: owner, RentEpoch: 7}
}

// tokenAccount is a holding of the one mint of stories.
func tokenAccount(name, wallet string, amount int) *storyAccount {
	a := account(name, 2039280, tokenProgram)
	a.Token = &storyToken{Mint: keyOf("mint"), Owner: keyOf(wallet), Amount: fmt.Sprint(amount), State: "initialized", DelegatedAmount: "0"}
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

// storyTime is the time of a slot.
func storyTime(slot uint64) int64 { return 1700000000 + int64(slot) }

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
		"blockhash": keyOf(b.name), "previous_blockhash": keyOf(b.parent), "block_time": storyTime(b.slot),
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

// chain returns the blocks with these names.
func (s *story) chain(names string) (chain []*storyBlock) {
	for name := range strings.FieldsSeq(names) {
		chain = append(chain, s.blocks[name])
	}
	return chain
}

// state returns the live accounts at the end of a chain.
func (s *story) state(chain []*storyBlock) map[string]*storyAccount {
	state := map[string]*storyAccount{}
	apply := func(writes []*storyAccount) {
		for _, w := range writes {
			if state[w.Pubkey] = w; w.Lamports == 0 {
				delete(state, w.Pubkey)
			}
		}
	}
	apply(s.base)
	for _, b := range chain {
		apply(b.writes)
	}
	return state
}

// changes returns what differs in after, in key order; what is gone has 0 lamports.
func changes(before, after map[string]*storyAccount) (list []*storyAccount) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range inKeyOrder(maps.Keys(keys)) {
		switch now := after[key]; {
		case now == nil:
			list = append(list, &storyAccount{Pubkey: key})
		case before[key] == nil || !reflect.DeepEqual(before[key], now):
			list = append(list, now)
		}
	}
	return list
}

// frame is what a socket must be sent: the literal text and the extended one.
type frame struct{ literal, extended string }

// telling numbers the updates and remembers what every level was told.
type telling struct {
	*story
	seq  int
	told [3][]*storyBlock      // chain by level
	news map[string][]numbered // of the newest time a block was put on the chain

	undone   []numbered // by the newest rollback
	undoneAt int        // the number before it
}

// numbered is an update with its number.
type numbered struct {
	*storyAccount
	seq int
}

var levels = []string{"processed", "confirmed", "finalized"}

// move returns the frames of a level that goes over to another chain.
func (t *telling) move(level int, chain []*storyBlock) (frames []frame) {
	old := t.told[level]
	t.told[level] = chain
	common := 0
	for common < len(old) && common < len(chain) && old[common] == chain[common] {
		common++
	}
	if common < len(old) {
		frames = append(frames, t.undo(level, old, old[:common])...)
	}
	for i := common; i < len(chain); i++ {
		b := chain[i]
		if level == 0 {
			t.news[b.name] = t.number(changes(t.state(chain[:i]), t.state(chain[:i+1])))
		}
		last := 0
		for _, n := range t.news[b.name] {
			frames, last = append(frames, t.update(n, b.slot, level)), n.seq
		}
		if last == 0 {
			last = t.seq
		}
		frames = append(frames, frame{extended: fmt.Sprintf(`{"type":"slot_end","slot":%d,"seq":%d}`, b.slot, last)})
	}
	return frames
}

// undo returns the frames of a rollback. A higher level hears of it only in stories where it
// stood at the same block.
func (t *telling) undo(level int, old, ancestors []*storyBlock) []frame {
	from, to := old[len(old)-1].slot, ancestors[len(ancestors)-1].slot
	if level == 0 {
		t.undoneAt = t.seq
		t.undone = t.number(changes(t.state(old), t.state(ancestors)))
	}
	frames := []frame{{extended: fmt.Sprintf(`{"type":"rollback","from_slot":%d,"to_slot":%d,"seq":%d}`, from, to, t.undoneAt)}}
	for _, n := range t.undone {
		frames = append(frames, t.update(n, to, level))
	}
	return frames
}

func (t *telling) number(list []*storyAccount) (out []numbered) {
	for _, a := range list {
		t.seq++
		out = append(out, numbered{a, t.seq})
	}
	return out
}

func (t *telling) update(n numbered, slot uint64, level int) frame {
	common := fmt.Sprintf(`{"type":"account_update","pubkey":%q,"lamports":%d,"timestamp":%q`, n.Pubkey, n.Lamports, *isoTime(storyTime(slot)))
	return frame{
		literal: common + "}",
		extended: fmt.Sprintf(`%s,"slot":%d,"seq":%d,"owner":%q,"executable":%v,"commitment":%q}`,
			common, slot, n.seq, n.Owner, n.Executable, levels[level]),
	}
}

// owners returns the accounts of every program, in key order.
func owners(state map[string]*storyAccount) map[string][]accountRecord {
	lists := map[string][]accountRecord{}
	for _, key := range inKeyOrder(maps.Keys(state)) {
		a := state[key]
		lists[a.Owner] = append(lists[a.Owner], a.record())
	}
	return lists
}

// wallets returns the holdings of every wallet, in key order.
func wallets(state map[string]*storyAccount) map[string][]tokenRecord {
	lists := map[string][]tokenRecord{}
	for _, key := range inKeyOrder(maps.Keys(state)) {
		if token := state[key].Token; token != nil {
			lists[token.Owner] = append(lists[token.Owner], tokenRecord{
				TokenAccount: key, Mint: token.Mint, ProgramID: state[key].Owner, Amount: token.Amount,
				State: &token.State, DelegatedAmount: &token.DelegatedAmount,
			})
		}
	}
	return lists
}

// allKeys returns every key that the story ever names as an account.
func (s *story) allKeys() []string {
	keys := map[string]bool{}
	for _, a := range s.base {
		keys[a.Pubkey] = true
	}
	for _, b := range s.blocks {
		for _, w := range b.writes {
			keys[w.Pubkey] = true
		}
	}
	return slices.Collect(maps.Keys(keys))
}
