//go:build race

package httpd

// underRace says that the race detector watches, which makes everything many times slower.
const underRace = true
