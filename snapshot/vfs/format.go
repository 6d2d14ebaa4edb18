package vfs

import "fmt"

// FormatError says that a file was written by a newer program in a format that this one does
// not read. It is not damage: the file is whole and must stay, and the program that wrote it is to
// be used.
type FormatError struct {
	File    string
	Version uint32 // the file's
	Newest  uint32 // the newest that can be read
}

// Error names both versions.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format version %d, this program reads up to %d", e.File, e.Version, e.Newest)
}
