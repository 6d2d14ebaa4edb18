// Package apikey knows the callers who have an API key.
//
// # Nouns
//
// A [Ring] is a file of keys and tiers, in YAML:
//
//	tiers:
//	  gold: {requests_per_minute: 6000, requests_per_hour: 200000, sockets: 200}
//	  inside: {exempt: true}
//	keys:
//	  - {name: market-maker, tier: gold, hash: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
//
// A [Key] is one caller. The file holds the SHA-256 of its text alone: the text is shown once, when it is made. A [Tier] says what its
// keys may do. What it leaves out is as for callers without a key.
//
// # Rules
//
// A Ring is safe for concurrent use. Load takes a newer file over in one step, or not at all: a key that stays goes on with the requests
// that it has counted, and one that is gone is marked as revoked for whoever serves its sockets.
package apikey
