// Package vfs is the small part of a disk that durability needs, as an interface.
//
// # Nouns
//
// An [FS] is a disk: a tree of names. A [File] is a run of bytes that is read and written at
// offsets. [Disk] is the real one. Package vfstest has one that can fail and lose its power.
//
// # What survives a crash
//
// The interface promises what POSIX does and no more. Bytes of a file survive once
// [File.Sync] returned, whether its name does or not. A name, given or taken away by Create,
// Lock, Rename or Remove, survives once [FS.SyncDir] of its directory returned; a directory
// survives once MkdirAll returned. What was not synced may survive in part, in any order.
// After a failed Sync the fate of everything not synced before is unknown, and a later Sync
// of the same file that succeeds says nothing about it.
package vfs
