package cluster

// Peers returns how many other nodes are seen.
func (c *Cluster) Peers() int { return 0 }
