package vfstest

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// tree is the names of a disk. Names are clean and relative; the root is ".".
type tree struct {
	dirs map[string]map[string]*node // of each directory its names; a directory's own has no node
	home map[*node]string            // where a node is; it has one name at most
}

func newTree() tree {
	return tree{dirs: map[string]map[string]*node{".": {}}, home: map[*node]string{}}
}

// clean returns the one spelling of a name. A Memory has no working directory but its root.
func clean(name string) string {
	return path.Clean(strings.TrimLeft(name, "/"))
}

// get returns the node that has a name, or nil.
func (t tree) get(name string) *node {
	return t.dirs[path.Dir(name)][path.Base(name)]
}

// isDir says whether a directory has the name.
func (t tree) isDir(name string) bool {
	_, found := t.dirs[name]
	return found
}

// put gives a name to a node, which loses its old one, as does the node that had the name.
func (t tree) put(name string, n *node) {
	t.drop(n)
	if old := t.get(name); old != nil {
		delete(t.home, old)
	}
	t.dirs[path.Dir(name)][path.Base(name)] = n
	t.home[n] = name
}

// drop takes the name of a node away, if it has one.
func (t tree) drop(n *node) {
	if name, found := t.home[n]; found {
		delete(t.dirs[path.Dir(name)], path.Base(name))
		delete(t.home, n)
	}
}

// mkdir makes a directory in one that exists.
func (t tree) mkdir(name string) {
	t.dirs[name] = map[string]*node{}
	t.dirs[path.Dir(name)][path.Base(name)] = nil
}

// translated returns a copy whose nodes are what other makes of these.
func (t tree) translated(other func(*node) *node) tree {
	copied := tree{
		dirs: make(map[string]map[string]*node, len(t.dirs)),
		home: make(map[*node]string, len(t.home)),
	}
	for dir, names := range t.dirs {
		copied.dirs[dir] = maps.Clone(names)
	}
	for n, name := range t.home {
		m := other(n)
		copied.dirs[path.Dir(name)][path.Base(name)] = m
		copied.home[m] = name
	}
	return copied
}

// moveDir gives a directory, with all below it, another name; an empty one removes them.
func (t tree) moveDir(from, to string) {
	for dir, names := range maps.Clone(t.dirs) {
		if isOrBelow(dir, from) {
			delete(t.dirs, dir)
			if to != "" {
				t.dirs[to+dir[len(from):]] = names
			}
		}
	}
	for n, name := range t.home {
		switch {
		case !isOrBelow(name, from):
		case to == "":
			delete(t.home, n)
		default:
			t.home[n] = to + name[len(from):]
		}
	}
	delete(t.dirs[path.Dir(from)], path.Base(from))
	if to != "" {
		t.dirs[path.Dir(to)][path.Base(to)] = nil
	}
}

// isOrBelow says whether a name is a directory's or of something below it.
func isOrBelow(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// naming is a change of the name of a node since its directory was synced.
type naming struct {
	node *node  // nil: the change is one of a directory
	from string // empty: it had none
	to   string // empty: it has none any more
}

// touches says whether the change is one of this directory.
func (c naming) touches(dir string) bool {
	return c.from != "" && path.Dir(c.from) == dir || c.to != "" && path.Dir(c.to) == dir
}

// apply does a change.
func (t tree) apply(c naming) {
	switch {
	case c.node == nil:
		t.moveDir(c.from, c.to)
	case c.to == "":
		t.drop(c.node)
	default:
		t.put(c.to, c.node)
	}
}

// complete marks, beside the changes marked already, those that they cannot do without: the earlier
// ones of the same names, and by that of the same node, and of directories above. Otherwise a file that was
// renamed away could be overwritten by its follower, and be found under neither name.
func complete(changes []naming, marked []bool) {
	names := map[string]bool{}
	for i, c := range slices.Backward(changes) {
		above := func(name string) bool { return c.node == nil && c.to != "" && names[name] && isOrBelow(name, c.to) }
		if marked[i] || names[c.from] || names[c.to] || slices.ContainsFunc(slices.Collect(maps.Keys(names)), above) {
			marked[i] = true
			names[c.from], names[c.to] = c.from != "", c.to != "" // No name is not a name in common.
		}
	}
}
