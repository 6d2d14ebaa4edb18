//go:build race

package bubble

// RaceEnabled is true under the race detector.
const RaceEnabled = true
