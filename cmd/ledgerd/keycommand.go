package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"go.yaml.in/yaml/v3"

	"ledgerd/engine/ledger/wait"
	"ledgerd/engine/source/unpack"
	"ledgerd/httpd/apikey"
	"ledgerd/snapshot/vfs"
)

const maxKeysBytes = 16 << 20

// readKeys reads a file of API keys.
func readKeys(path string) (*apikey.File, error) {
	content, err := unpack.ReadRegular(path, maxKeysBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read the API keys %s: %w", path, err)
	}
	f, err := apikey.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("API keys %s: %w", path, err)
	}
	return f, nil
}

type keyCommand struct {
	APIKeys string `help:"The file, as serve reads it." name:"api-keys" required:"" placeholder:"FILE"`

	New    keyNewCommand    `cmd:"" help:"Make a key, add its hash to the file, and print its text: that is not kept anywhere."`
	Revoke keyRevokeCommand `cmd:"" help:"Take a key out of the file."`
	List   keyListCommand   `cmd:"" help:"Print names and tiers of the keys."`
}

type keyNewCommand struct {
	Name string `arg:"" help:"Whose key it is."`
	Tier string `help:"The tier of the file that says what the key may do." required:""`
}

// Run adds a key. Its text is printed before it counts: a key that nobody has seen is of no use.
func (c *keyNewCommand) Run(ctx context.Context, parent *keyCommand, s *streams) error {
	text, hash := apikey.New()
	entry := new(yaml.Node)
	if err := entry.Encode(apikey.Entry{Name: c.Name, Tier: c.Tier, Hash: hash}); err != nil {
		return fmt.Errorf("cannot write the key: %w", err)
	}
	err := changeKeys(ctx, parent.APIKeys, func(list *yaml.Node) error {
		list.Style, list.Content = 0, append(list.Content, entry)
		return nil
	}, func() error {
		_, err := fmt.Fprintln(s.out, text)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(s.err, "the key is in force once the node has read the file again: kill -HUP")
	return nil
}

type keyRevokeCommand struct {
	Name string `arg:"" help:"Whose key it is."`
}

// Run removes a key.
func (c *keyRevokeCommand) Run(ctx context.Context, parent *keyCommand, s *streams) error {
	err := changeKeys(ctx, parent.APIKeys, func(list *yaml.Node) error {
		before := len(list.Content)
		list.Content = slices.DeleteFunc(list.Content, func(n *yaml.Node) bool {
			var e apikey.Entry
			return n.Decode(&e) == nil && e.Name == c.Name
		})
		if len(list.Content) == before {
			return &usageError{fmt.Errorf("%s has no key of that name", parent.APIKeys)}
		}
		if len(list.Content) == 0 {
			list.Style, list.HeadComment = yaml.FlowStyle, "" // behind a comment the package writes an empty list where none can be
		}
		return nil
	}, func() error { return nil })
	if err != nil {
		return err
	}
	fmt.Fprintln(s.err, "the key is refused, and its sockets are closed, once the node has read the file again: kill -HUP")
	return nil
}

type keyListCommand struct{}

// Run prints the keys.
func (keyListCommand) Run(parent *keyCommand, s *streams) error {
	f, err := readKeys(parent.APIKeys)
	if err != nil {
		return &usageError{err}
	}
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tTIER")
	for _, k := range f.Keys {
		fmt.Fprintf(table, "%s\t%s\n", k.Name, k.Tier)
	}
	return table.Flush()
}

// changeKeys has edit change the list of keys in a file, and replaces the file once announce succeeds; what people wrote beside the keys
// stays. One process changes a file at a time. Tiers are for people to write, so that there is a file.
func changeKeys(ctx context.Context, path string, edit func(list *yaml.Node) error, announce func() error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // so that all names of a file have one lock
	}
	lock, err := os.Open(filepath.Dir(path))
	if err == nil {
		defer lock.Close() // which unlocks it
		err = waitForLock(ctx, lock)
	}
	if err != nil {
		return fmt.Errorf("cannot lock the directory of %s: %w", path, err)
	}
	content, err := unpack.ReadRegular(path, maxKeysBytes)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; write the tiers first, such as: tiers: {gold: {requests_per_minute: 6000, requests_per_hour: 200000}}", err)
	}
	if err == nil {
		_, err = apikey.Parse(content)
	}
	var root yaml.Node
	if err == nil {
		err = yaml.Unmarshal(content, &root)
	}
	if err != nil {
		return &usageError{fmt.Errorf("API keys %s: %w", path, err)}
	}
	if err := edit(listOfKeys(root.Content[0])); err != nil {
		return err
	}
	var changed bytes.Buffer
	encoder := yaml.NewEncoder(&changed)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&root), encoder.Close()); err != nil {
		return fmt.Errorf("cannot write the API keys: %w", err)
	}
	if _, err := apikey.Parse(changed.Bytes()); err != nil {
		return &usageError{err}
	}
	if err := announce(); err != nil {
		return fmt.Errorf("cannot print the key: %w", err)
	}
	if err := replaceKeys(path, changed.Bytes()); err != nil {
		return fmt.Errorf("cannot write the API keys: %w", err)
	}
	return nil
}

// lockPause is how long a file is left alone that another process has locked: the system can wait for a lock, but not for the end of ctx meanwhile.
const lockPause = 50 * time.Millisecond

// waitForLock locks a file once no other process has it locked.
func waitForLock(ctx context.Context, f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if wait.Sleep(ctx, lockPause) != nil {
			return context.Cause(ctx)
		}
	}
}

// listOfKeys returns the list of keys in a file, which it makes if there is none.
func listOfKeys(file *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(file.Content); i += 2 {
		if file.Content[i].Value == "keys" {
			file.Content[i+1].Kind, file.Content[i+1].Tag = yaml.SequenceNode, "" // it may have been null
			return file.Content[i+1]
		}
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	file.Content = append(file.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "keys"}, list)
	return list
}

// replaceKeys gives a file new content. It keeps its owner and its mode.
func replaceKeys(path string, content []byte) error {
	before, err := os.Stat(path)
	if err != nil {
		return err
	}
	owner, fresh := before.Sys().(*syscall.Stat_t), path+vfs.TemporarySuffix
	return replaceFile(path, func(f vfs.File) error {
		_, err := f.WriteAt(content, 0)
		return errors.Join(err, os.Chown(fresh, int(owner.Uid), int(owner.Gid)), os.Chmod(fresh, before.Mode().Perm()))
	})
}
