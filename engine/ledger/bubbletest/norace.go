//go:build !race

package bubbletest

// RaceEnabled is true under the race detector.
const RaceEnabled = false
