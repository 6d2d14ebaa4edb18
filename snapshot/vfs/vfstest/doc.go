// Package vfstest has disks for tests: [Memory] is one that can lose its power, and [Faulty] wraps another and
// fails when it is told to.
package vfstest
