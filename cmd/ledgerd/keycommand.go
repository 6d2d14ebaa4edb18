package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"

	"ledgerd/httpd/apikey"
	"ledgerd/snapshot/vfs"
)

const maxKeysBytes = 16 << 20

// readKeys reads a file of API keys.
func readKeys(path string) (*apikey.File, error) {
	content, err := readRegular(path, maxKeysBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read the API keys: %w", err)
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

// Run adds a key.
func (c *keyNewCommand) Run(parent *keyCommand, s *streams) error {
	doc, err := openKeys(parent.APIKeys)
	if err != nil {
		return err
	}
	text, hash := apikey.New()
	defer doc.close()
	entry := new(yaml.Node)
	if err := entry.Encode(apikey.Entry{Name: c.Name, Tier: c.Tier, Hash: hash}); err != nil {
		return fmt.Errorf("cannot write the key: %w", err)
	}
	list := doc.keys()
	list.Style, list.Content = 0, append(list.Content, entry)
	content, err := doc.encode()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(s.out, text); err != nil { // before it counts: a key that nobody has seen is of no use
		return fmt.Errorf("cannot print the key: %w", err)
	}
	if err := replaceFile(doc.path, content); err != nil {
		return fmt.Errorf("cannot write the API keys: %w", err)
	}
	fmt.Fprintln(s.err, "the key is in force once the node has read the file again: kill -HUP")
	return nil
}

type keyRevokeCommand struct {
	Name string `arg:"" help:"Whose key it is."`
}

// Run removes a key.
func (c *keyRevokeCommand) Run(parent *keyCommand, s *streams) error {
	doc, err := openKeys(parent.APIKeys)
	if err != nil {
		return err
	}
	defer doc.close()
	list := doc.keys()
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
	content, err := doc.encode()
	if err == nil {
		err = replaceFile(doc.path, content)
	}
	if err != nil {
		return fmt.Errorf("cannot write the API keys: %w", err)
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

// keysDocument is a file of keys that is about to change; what people wrote beside them stays. One process changes it at a time.
type keysDocument struct {
	path string
	root yaml.Node
	lock *os.File // the directory
}

// close lets others change the file.
func (d *keysDocument) close() { _ = d.lock.Close() }

// openKeys reads a file to change it. Tiers are for people to write, so that there is one.
func openKeys(path string) (doc *keysDocument, err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // so that all names of a file have one lock
	}
	lock, err := os.Open(filepath.Dir(path))
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the directory of %s: %w", path, err)
	}
	doc = &keysDocument{path: path, lock: lock}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	content, err := readRegular(path, maxKeysBytes)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; write the tiers first, such as: tiers: {gold: {requests_per_minute: 6000, requests_per_hour: 200000}}", err)
	}
	if err == nil {
		_, err = apikey.Parse(content)
	}
	if err == nil {
		err = yaml.Unmarshal(content, &doc.root)
	}
	if err != nil {
		return nil, &usageError{fmt.Errorf("API keys %s: %w", path, err)}
	}
	return doc, nil
}

// keys returns the list of keys, which it makes if there is none.
func (d *keysDocument) keys() *yaml.Node {
	top := d.root.Content[0]
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value == "keys" {
			top.Content[i+1].Kind, top.Content[i+1].Tag = yaml.SequenceNode, "" // it may have been null
			return top.Content[i+1]
		}
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	top.Content = append(top.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "keys"}, list)
	return list
}

// encode returns what the file is to hold, if that is right.
func (d *keysDocument) encode() ([]byte, error) {
	var content bytes.Buffer
	encoder := yaml.NewEncoder(&content)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&d.root), encoder.Close()); err != nil {
		return nil, err
	}
	if _, err := apikey.Parse(content.Bytes()); err != nil {
		return nil, &usageError{err}
	}
	return content.Bytes(), nil
}

// replaceFile replaces what a file holds in one step that outlives a crash. Its owner and who may read it stay the same.
func replaceFile(path string, content []byte) error {
	before, err := os.Stat(path)
	if err != nil {
		return err
	}
	owner, fresh := before.Sys().(*syscall.Stat_t), path+vfs.TemporarySuffix
	f, err := vfs.Replace(vfs.Disk{}, path, func(f vfs.File) error {
		_, err := f.WriteAt(content, 0)
		return errors.Join(err, os.Chown(fresh, int(owner.Uid), int(owner.Gid)), os.Chmod(fresh, before.Mode().Perm()))
	})
	if err != nil {
		_ = os.Remove(fresh) // it may not be there
		return err
	}
	return f.Close()
}
