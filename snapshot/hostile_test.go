package snapshot

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs/vfstest"
)

// resealHeader corrects the checksum of a header that was changed.
func resealHeader(header []byte) []byte {
	return binary.LittleEndian.AppendUint32(header[:headerBytes-4:headerBytes-4], crc32.Checksum(header[:headerBytes-4], castagnoli))
}

// forgery makes files whose checksums are all right and whose content need not be.
type forgery struct{ chunks, index []byte }

// add appends a chunk; where c leaves a length or the checksum 0, the true one is taken.
func (f *forgery) add(c chunk, raw []byte) *forgery {
	return f.addFrame(c, compress(windowBytes, raw), len(raw))
}

func (f *forgery) addFrame(c chunk, frame []byte, raw int) *forgery {
	c.stored, c.raw = cmp.Or(c.stored, uint32(len(frame))), cmp.Or(c.raw, uint32(raw))
	c.checksum = cmp.Or(c.checksum, crc32.Checksum(frame, castagnoli))
	f.chunks, f.index = append(f.chunks, frame...), appendEntry(f.index, &c)
	return f
}

func (f *forgery) bytes() []byte {
	header := appendHeader(nil, snapshotMagic)
	end, _ := appendFooter(slices.Clip(f.index), header, f.index)
	return slices.Concat(header, f.chunks, end)
}

func compress(window int, raw []byte) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		panic(err)
	}
	defer e.Close()
	return e.EncodeAll(raw, nil)
}

// chunkOf returns the raw bytes and the entry of a chunk of accounts.
func chunkOf(accounts ...*ledger.Account) (chunk, []byte) {
	var raw []byte
	for _, a := range accounts {
		raw = codec.AppendAccount(raw, a)
	}
	return chunk{kind: accountChunk, count: uint32(len(accounts)), first: accounts[0].Pubkey, last: accounts[len(accounts)-1].Pubkey}, raw
}

// genuine returns a disk with a snapshot of nothing at slot 1 after record 1, and its meta.
func genuine(t *testing.T) (*vfstest.Memory, *Meta) {
	disk := vfstest.NewMemory()
	blocks := testBlocks(1, 1)
	m := Meta{Version: 1, Slot: 1, Floor: 1, Block: blocks[0].Block, Taken: time.Unix(1_700_000_000, 0)}
	w, err := openTestStore(t, disk).Write(t.Context(), m, nil, blocks, Pace{})
	must(t, err)
	return disk, w.Meta
}

// metaOf returns the raw bytes of a meta that counts so much.
func metaOf(t *testing.T, m Meta, accounts, tombstones, mints uint64) []byte {
	m.Accounts, m.Tombstones, m.Mints = accounts, tombstones, mints
	raw, err := m.encode()
	must(t, err)
	return raw
}

// G24, G25: a file whose sums are right but whose content is not is refused, and takes no more memory than it says. That the state is
// another one, by its hash or by what is counted, only Verify finds.
func TestForgedFilesAreRefused(t *testing.T) {
	st := testState(0, 0, 3, 0)
	a, b, c := st.accounts[0], st.accounts[1], st.accounts[2]
	live := st.meta.Accounts
	disk, base := genuine(t)
	base.StateHash = st.meta.StateHash
	other := *base
	other.StateHash[2]++
	meta := chunk{kind: metaChunk, count: 1}
	whole := metaOf(t, *base, live, 3-live, 0)
	noBlock := regexp.MustCompile(`,\s*"block": "[^"]*"`).ReplaceAll(whole, nil)
	good, goodRaw := chunkOf(a, b, c)
	change := func(f func(*chunk)) chunk { c := good; f(&c); return c }
	forge := func() *forgery { return new(forgery) }
	of := func(accounts ...*ledger.Account) *forgery {
		c, raw := chunkOf(accounts...)
		return forge().add(c, raw)
	}
	swapped, swappedRaw := chunkOf(b, a, c)
	swapped.first = b.Pubkey
	bomb := compress(windowBytes, make([]byte, 64<<20))
	wide := compress(2*windowBytes, make([]byte, 1<<20+1))

	for name, tt := range map[string]struct {
		file *forgery
		says string // "" where all is well
	}{
		"nothing wrong":              {forge().add(good, goodRaw).add(meta, whole), ""},
		"nothing wrong, meta first":  {forge().add(meta, whole).add(good, goodRaw), ""},
		"no meta":                    {forge().add(good, goodRaw), "not one of a snapshot"},
		"no chunk at all":            {forge(), "not one of a snapshot"},
		"two metas":                  {forge().add(meta, whole).add(chunk{kind: metaChunk, count: 1, first: a.Pubkey, last: a.Pubkey}, whole), "not one of a snapshot"},
		"meta is not JSON":           {forge().add(good, goodRaw).add(meta, []byte("meta")), "cannot be read"},
		"meta with an unknown field": {forge().add(good, goodRaw).add(meta, []byte(`{"colour":1}`)), "cannot be read"},
		"more after meta":            {forge().add(good, goodRaw).add(meta, append(whole[:len(whole):len(whole)], " {}"...)), "cannot be read"},
		"meta of another version":    {forge().add(meta, []byte(strings.Replace(string(whole), `"version": 1`, `"version": 2`, 1))), "another's name"},
		"meta without a block":       {forge().add(good, goodRaw).add(meta, noBlock), "newest block"},
		"too few accounts":           {of(a, b).add(meta, whole), "the index counts 2 accounts"},
		"too many mints":             {forge().add(good, goodRaw).add(meta, metaOf(t, *base, live, 3-live, 1)), "the index counts 0 mints"},
		"more counted than there":    {forge().add(change(func(c *chunk) { c.count = 4 }), goodRaw).add(meta, metaOf(t, *base, live, 4-live, 0)), "holds 3 items, not 4"},
		"less counted than there":    {forge().add(change(func(c *chunk) { c.count = 2 }), goodRaw).add(meta, metaOf(t, *base, live, 2-live, 0)), "holds 3 items, not 2"},
		"other first key":            {forge().add(change(func(c *chunk) { c.first[31]-- }), goodRaw).add(meta, whole), "first key"},
		"other last key":             {forge().add(change(func(c *chunk) { c.last[31]++ }), goodRaw).add(meta, whole), "last key"},
		"first key after last":       {forge().add(change(func(c *chunk) { c.first, c.last = c.last, c.first }), goodRaw).add(meta, whole), "do not fit its count"},
		"keys out of order":          {forge().add(swapped, swappedRaw).add(meta, whole), "out of order"},
		"key twice":                  {of(a, b, b, c).add(meta, metaOf(t, *base, live, 4-live, 0)), "out of order"},
		"chunks overlap":             {of(a, c).add(chunkOf(b)).add(meta, whole), "overlap"},
		"chunk twice":                {of(a, b, c).add(good, goodRaw).add(meta, metaOf(t, *base, 2*live, 6-2*live, 0)), "overlap"},
		"blocks in a snapshot":       {forge().add(chunk{kind: blockChunk, count: 1}, goodRaw).add(meta, whole), "not one of a snapshot"},
		"unknown kind":               {forge().add(change(func(c *chunk) { c.kind = 9 }), goodRaw).add(meta, whole), "unknown kind"},
		"nothing in a chunk":         {forge().add(change(func(c *chunk) { c.count = 0 }), goodRaw).add(meta, whole), "0 items"},
		"trailing bytes in a chunk":  {forge().add(good, append(goodRaw[:len(goodRaw):len(goodRaw)], 0)).add(meta, whole), "item 3"},
		"an account cut short":       {forge().add(good, goodRaw[:len(goodRaw)-1]).add(meta, whole), "item 2"},
		"says less than it holds":    {forge().add(change(func(c *chunk) { c.raw = uint32(len(goodRaw) - 1) }), goodRaw).add(meta, whole), "a chunk holds"},
		"says more than it holds":    {forge().add(change(func(c *chunk) { c.raw = uint32(len(goodRaw) + 1) }), goodRaw).add(meta, whole), "a chunk holds"},
		"says it is huge":            {forge().add(change(func(c *chunk) { c.raw = 1 << 31 }), goodRaw).add(meta, whole), "says it holds"},
		"a bomb":                     {forge().addFrame(change(func(c *chunk) { c.raw = 1 << 20 }), bomb, 0).add(meta, whole), "decompress"},
		"too wide a window":          {forge().addFrame(change(func(c *chunk) { c.raw = 1 << 20 }), wide, 0).add(meta, whole), "window size exceeded"},
		"no frame":                   {forge().addFrame(change(func(c *chunk) { c.raw = 100 }), []byte("no frame at all"), 0).add(meta, whole), "decompress"},
		"two frames in a chunk":      {forge().addFrame(change(func(c *chunk) { c.raw = 2 * uint32(len(goodRaw)) }), append(compress(windowBytes, goodRaw), compress(windowBytes, goodRaw)...), 0).add(meta, whole), "out of order"},
		"stored length beyond end":   {forge().add(change(func(c *chunk) { c.stored = uint32(len(goodRaw)) }), goodRaw).add(meta, whole), "the chunks end at"},
		"hole between chunks":        {forge().addFrame(change(func(c *chunk) { c.stored = uint32(len(compress(windowBytes, goodRaw))) }), append(compress(windowBytes, goodRaw), 0), len(goodRaw)).add(meta, whole), "the chunks end at"},
		"another hash":               {forge().add(good, goodRaw).add(meta, metaOf(t, other, live, 3-live, 0)), "its meta says {2 1 0"},
		"a live tombstone":           {forge().add(good, goodRaw).add(meta, metaOf(t, *base, live+1, 2-live, 0)), "its meta says {3 0 0"},
		"checksum of something else": {forge().add(change(func(c *chunk) { c.checksum = 1 }), goodRaw).add(meta, whole), "checksum of a chunk"},
	} {
		must(t, disk.WriteFile(testDir+"/"+stateName(1, 1), tt.file.bytes()))
		err := serves(disk, Info{Name: stateName(1, 1)})
		if err == nil {
			err = newest(t, openTestStore(t, disk)).Verify(t.Context(), Pace{})
		}
		if tt.says == "" && err != nil || tt.says != "" && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: err = %v, want damage that says %q", name, err, tt.says)
		}
	}
}
