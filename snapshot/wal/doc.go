// Package wal is the write-ahead log: it makes the decisions of the sequencer durable, in order, before they are published.
//
// # Nouns
//
// A record is a [ledger.Record] in its frame. A commit is what becomes durable and visible at
// once: one record or several, all of them or none. A segment is one file of the log. A
// [Position] counts the bytes of the log from its beginning, pruned ones included.
//
// # The files
//
// The log is a directory:
//
//	0000000000000001.wal         a segment; the name is its index
//	0000000000000001.wal.broken  the tail that was cut off that segment after a crash; removed with it
//	newest                       the index of the newest segment, and a position known durable
//	*.tmp                        a file that was not finished; left by a crash
//
// The package leaves any other name alone. A segment is a header and then frames, one
// after the other, each padded with zeros to a multiple of 8 bytes. Zeros after the last frame
// are preallocated space. Every frame holds a chain value, which is the start of a hash over the
// chain value of the frame before it and the frame itself. Every header holds the chain value at
// its beginning. So the segments form one chain, and no segment of another log fits into it.
//
// # Order
//
// A commit is one write, and under [Always] one sync, before [Log.Commit] returns. Commits
// never span segments. A full segment is cut to its length, and every record in it is durable,
// whatever the policy, before the next one is made. (After a crash the cut may be undone: the
// next header says where the segment ends.) From then on it is never written again. The next segment is
// written under a temporary name: its space is preallocated, its header written and synced; then it is renamed and the
// directory synced, so a segment is never seen without a whole header. Then newest is replaced in the
// same way. Only after that a record of the segment is written: if newest names a segment
// that is missing, that segment was removed. While commits come, newest is replaced about once a second and
// names the position that is durable by then: a log that ends before that position has lost records. No commit
// waits for a replacement: a segment that gets full meanwhile grows.
//
// [Log.Settle] never appends to what another process wrote. It cuts what a crash left, writes again
// and syncs what is not known durable; the first commit begins a segment. It writes again because a sync
// that failed in the other process may have left pages that look clean and are not on disk.
// [Log.Close] names the end of the log in newest, so that a later loss of any record is detected.
//
// # Who reads
//
// [Open] reads the log for the process that will write it. Any number of [Reader]s, in that process or in another, read it
// meanwhile, including commits that are not durable yet: the process of the writer stops its Readers at what is published.
//
// # What is a crash, and what is damage
//
// Every frame says up to which position the log was known durable when it was written. So does
// newest. A segment begins only after all before it is durable. The highest of these positions in all that is intact,
// including frames after the damage, divides the log:
//
//   - Above it, at the end of the last segment, a crash may leave bytes that are not whole: a
//     frame cut short, pages that were not written, a commit whose last record is missing.
//     Open ends before the commit it is in. Settle keeps the bytes aside and cuts them.
//   - Anything else is damage. [Open] returns a [*CorruptError], and nothing is changed.
//
// Under [Always] the frame after a commit says that the commit is durable, and newest does so a second
// later. So if the end of the log is lost afterwards, the loss is detected, except for commits of the last second
// before the process died: these cannot be distinguished from commits that were never finished.
//
// A segment ends where the header of the next segment says that the next one begins.
// Bytes after that are the rest of a commit that failed for lack of space and could not be cut
// off. It was never acknowledged.
//
// # When the disk fails
//
// Lack of space ([vfs.IsFull]), in any call but a sync, and lack of file descriptors
// ([vfs.IsOutOfFiles]) is [ErrNoSpace]: the commit is cut off again, and can be retried. If it cannot be
// cut off, the segment is sealed, and the log goes on in the next. After any other failure to write, and after every
// failed sync, it is unknown what is on disk, and a sync that succeeds later would prove nothing. That is [ErrFailed]: the
// log is never written or synced again, and only a restart finds out what is on disk.
package wal
