package cluster

// Peers returns how many other nodes are seen.
func (c *Cluster) Peers() int { return 0 }

// MakesSnapshots reports whether this node is the one that makes snapshots.
func (c *Cluster) MakesSnapshots() bool { return c.maker != nil && c.maker.held() }
