// Package exchange hands snapshots from node to node, so that a node can begin without the records before them.
//
// # Nouns
//
// A part is up to 8 MiB of a snapshot's file, an object in the object store beside the stream, named after its hash. A
// [Manifest] is an object that names the parts of one snapshot, and holds the record that the snapshot is the state
// after.
//
// # Ownership
//
// One node at a time makes snapshots: who holds the lease of the cluster for that, and only it stores and removes objects.
// As with all leases, two nodes may think for a while that they hold it, so parts that are stored twice are the same, and a manifest
// counts only while all of its parts are there whole. Any node fetches.
//
// # Order
//
// [Exchange.Offer] stores the parts, then the manifest. Then it removes what the two newest whole snapshots do not
// need, manifests before parts, and purges the stream up to the older of the two. So the records after each snapshot that is
// offered are in the stream. [Exchange.Fetch] compares the manifest's record with that of the stream before it
// takes a part, and each part with its hash; a file gets its name when it is whole and synced.
package exchange
