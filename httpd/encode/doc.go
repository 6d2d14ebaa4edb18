// Package encode writes the records of the interface: JSON, entity tags, cursors and content
// codings.
//
// Records are appended field by field in the order the interface shows them. Numbers are exact,
// whatever their size; what the ledger never recorded is null. Nothing here keeps a buffer: who
// calls owns what was appended to.
package encode
