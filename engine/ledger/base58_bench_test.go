package ledger

import (
	"math/rand/v2"
	"testing"

	"github.com/mr-tron/base58"
)

// The other implementation is what a Go program would use instead; both run here so that
// the gain is measured on one machine in one run.
func BenchmarkBase58(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var key Pubkey
	var sig Signature
	for i := range sig {
		sig[i] = byte(random.Uint32())
	}
	copy(key[:], sig[:])
	keyText, sigText := key.String(), sig.String()
	buf := make([]byte, 0, text64Max)

	bench := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
	bench("encode32/ours", func() { buf = key.AppendBase58(buf[:0]) })
	bench("encode32/mr-tron", func() { _ = base58.Encode(key[:]) })
	bench("encode64/ours", func() { buf = sig.AppendBase58(buf[:0]) })
	bench("encode64/mr-tron", func() { _ = base58.Encode(sig[:]) })
	bench("decode32/ours", func() { key, _ = ParsePubkey(keyText) })
	bench("decode32/mr-tron", func() { _, _ = base58.Decode(keyText) })
	bench("decode64/ours", func() { sig, _ = ParseSignature(sigText) })
	bench("decode64/mr-tron", func() { _, _ = base58.Decode(sigText) })
}
