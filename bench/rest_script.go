package bench

import (
	"math/rand/v2"

	"ledgerd/bench/peer"
)

// restKind is what a request asks for.
type restKind uint8

const (
	askAccount restKind = iota
	askMissing          // an account that does not exist
	askBalance
	askBatch // several accounts at once
	askLatest
	askTransaction
	askProgram // a list
	restKinds
)

// restAsk is what one request asks for.
type restAsk struct {
	kind  restKind
	index uint32 // of the account, of the first of several, of the program, or the transaction
}

// coding returns which Accept-Encoding a request has. Answers of several accounts, and of some transactions,
// are longer than what ledgerd leaves uncompressed: their scenarios measure, and check, the records themselves.
func (a restAsk) coding() string {
	if a.kind == askBatch || a.kind == askTransaction || a.kind == askProgram {
		return peer.Identity
	}
	return peer.AnyCoding
}

// script is requests in the order in which they are made, one behind the other in memory, so
// that asking costs neither choice nor encoding. It begins again at its end.
type script struct {
	text  []byte
	ends  []uint32
	asked []restAsk
}

// newScript writes so many requests, each chosen by choose and written by write.
func newScript(requests int, choose func(r *rand.Rand) restAsk, write func(dst []byte, a restAsk) []byte) *script {
	s := &script{ends: make([]uint32, 0, requests), asked: make([]restAsk, 0, requests)}
	choice := rand.New(rand.NewPCG(1, 1)) // every run asks the same
	for range requests {
		a := choose(choice)
		s.text = write(s.text, a)
		s.ends = append(s.ends, uint32(len(s.text)))
		s.asked = append(s.asked, a)
	}
	return s
}

// part returns the text of the requests from one on: so many, or fewer where the script ends.
func (s *script) part(from, want int) (text []byte, count int) {
	begin := uint32(0)
	if from > 0 {
		begin = s.ends[from-1]
	}
	to := min(from+want, len(s.ends))
	return s.text[begin:s.ends[to-1]], to - from
}
