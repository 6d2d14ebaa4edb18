// Package vfstest has a disk for tests: [Memory] can lose its power, and [Faulty] is one whose calls fail when they are
// told to.
package vfstest
