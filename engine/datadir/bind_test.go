package datadir

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// filter returns one by the numbers of keys.
func filter(owners []byte, accounts ...byte) *ledger.Filter {
	keys := func(numbers []byte) (list []ledger.Pubkey) {
		for _, n := range numbers {
			list = append(list, key(n))
		}
		return list
	}
	return ledger.NewFilter(keys(owners), keys(accounts))
}

func someFacts() Facts {
	return Facts{Source: "sim:seed=1", Complete: true, Live: true, SkipVotes: true, Filter: filter([]byte{1}, 2, 3, 4, 5, 6)}
}

// change changes facts as words say: source=1, complete=false, live=false, votes=skip, votes=hold, filter=OWNERS:ACCOUNTS and data=1, of which a
// digit is the number of a key. Filters and data may also be none, and data all.
func (f *Facts) change(t testing.TB, words []string) {
	t.Helper()
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "source":
			f.Source = "sim:seed=" + value
		case "complete":
			f.Complete = value == "true"
		case "live":
			f.Live = value == "true"
		case "votes":
			f.SkipVotes = value == "skip"
		case "filter":
			owners, accounts, ok := strings.Cut(value, ":")
			if f.Filter = nil; ok {
				f.Filter = filter(numbers(owners), numbers(accounts)...)
			}
		case "data":
			if n, err := strconv.Atoi(value); err == nil {
				value = key(byte(n)).String()
			}
			var err error
			f.Data, err = ledger.ParseDataPrograms(value)
			ledgertest.Must(t, err)
		default:
			t.Fatalf("%q is no fact", word)
		}
	}
}

// numbers returns the numbers that digits are.
func numbers(digits string) (all []byte) {
	for _, digit := range []byte(digits) {
		all = append(all, digit-'0')
	}
	return all
}

// bind binds a directory as a line says: a start with facts, a first block, a cluster with some facts that were changed, or an import.
func bind(t *testing.T, d *Dir, words []string) error {
	t.Helper()
	switch words[0] {
	case "start":
		var f Facts
		f.change(t, words[1:])
		if f.Source == "" {
			return d.Bind(nil, f.Filter, f.Data, f.SkipVotes)
		}
		return d.Bind(&ledger.SourceInfo{Identity: f.Source, Complete: true}, f.Filter, f.Data, f.SkipVotes)
	case "block":
		root := hash(numbers(words[1])[0])
		if err := d.CheckRoot(root); err != nil {
			return err
		}
		return d.SaveRoot(ledger.Some(root), false)
	case "cluster":
		f := someFacts()
		f.change(t, words[2:])
		return d.BindCluster(words[1], f)
	case "import":
		return d.SaveImport(ImportNote{Finished: true}, nil, nil)
	}
	return fmt.Errorf("%q binds nothing", words)
}

// TestDirIsBoundToWhatItBeganWith plays scenes, in which each line is what a directory is bound to, twice: to the same again, after a restart, it is
// always bound. What is refused changes nothing. A view says the same, and changes nothing.
func TestDirIsBoundToWhatItBeganWith(t *testing.T) {
	ledgertest.Scenes(t, "testdata/bindings.txt", "# ", *update, func(t *testing.T, scene string) string {
		title, lines, _ := strings.Cut(scene, "\n")
		text, disk := "# "+title+"\n", vfstest.NewMemory()
		for line := range strings.SplitSeq(lines, "\n") {
			if strings.HasPrefix(line, "\t") || line == "" {
				continue
			}
			var outcomes [2]string
			for again := range outcomes {
				d := openOn(t, disk)
				before := d.saved
				view, err := viewOn(disk, "data")
				ledgertest.Must(t, err)
				viewed := bind(t, view, strings.Fields(line))
				ledgertest.Must(t, d.read())
				ledgertest.Equal(t, d.saved, before, "%s: %s: what is on disk after a view is bound", title, line)
				err = bind(t, d, strings.Fields(line))
				if err != nil {
					outcomes[again] = "\t" + err.Error() + "\n"
					ledgertest.Equal(t, d.saved, before, "%s: %s: what it is bound to, as before", title, line)
				}
				ledgertest.Equal(t, fmt.Sprint(viewed), fmt.Sprint(err), "%s: %s: what a view says", title, line)
				ledgertest.Must(t, d.Close())
			}
			ledgertest.Equal(t, outcomes[1], outcomes[0], "%s: %s again, after a restart", title, line)
			text += line + "\n" + outcomes[0]
		}
		return text + "\n"
	})
}
