package base58

import (
	"math/rand/v2"
	"testing"

	other "github.com/mr-tron/base58"
)

// The other implementation is what a Go program would use instead; both run here so that
// the gain is measured on one machine in one run.
func BenchmarkBase58(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var key [32]byte
	var sig [64]byte
	for i := range sig {
		sig[i] = byte(random.Uint32())
	}
	copy(key[:], sig[:])
	keyText, sigText := string(Append32(nil, &key)), string(Append64(nil, &sig))
	buf := make([]byte, 0, Max64)

	bench := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
	bench("encode32/ours", func() { buf = Append32(buf[:0], &key) })
	bench("encode32/mr-tron", func() { _ = other.Encode(key[:]) })
	bench("encode64/ours", func() { buf = Append64(buf[:0], &sig) })
	bench("encode64/mr-tron", func() { _ = other.Encode(sig[:]) })
	bench("decode32/ours", func() { _ = Decode32(&key, keyText) })
	bench("decode32/mr-tron", func() { _, _ = other.Decode(keyText) })
	bench("decode64/ours", func() { _ = Decode64(&sig, sigText) })
	bench("decode64/mr-tron", func() { _, _ = other.Decode(sigText) })
}
