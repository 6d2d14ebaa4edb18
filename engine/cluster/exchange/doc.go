// Package exchange hands snapshots from node to node, so that a node can begin without the records before them.
//
// # Nouns
//
// A [Manifest] says of one snapshot which files it has, which node holds them and where that node is asked for them, and holds the
// record that the snapshot is the state after. A part is up to 16 MiB of a file; the manifest holds the hash of each. A peer is a node
// that is asked for parts, by HTTP on its operators' listener.
//
// # Ownership
//
// Each node that others reach offers the snapshots that it has: the manifests of its newest two are one value in a bucket
// beside the stream, under its own key, which it alone writes. The files stay where they are, on its own disk.
//
// # Order
//
// [Exchange.Offer] is called once the files are whole. It asks this node itself for a part, as another node would, before it
// writes the manifests: what others cannot fetch is not offered. Then it purges the stream up to the older of its two snapshots,
// and removes what nodes offered that are gone: a snapshot is of no use once the record that it is the state after was purged.
// So the records after both snapshots of the node that purged last are in the stream.
//
// [Exchange.Fetch] compares the manifest's record with that of the stream before it asks for a part, and each part with its hash. At last it
// looks whether the stream still goes on from there. A file gets its name when it is whole and synced. Where a peer does not give what it should
// within a minute, a fetch from another one goes on with the parts that are right: files of blocks are the same on many nodes.
package exchange
