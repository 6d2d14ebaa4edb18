package base58

import (
	"crypto/sha512"
	"testing"

	other "github.com/mr-tron/base58"
)

// The other implementation is what a Go program would use instead; both run here so that
// the gain is measured on one machine in one run.
func BenchmarkBase58(b *testing.B) {
	sig := sha512.Sum512(nil)
	key := [32]byte(sig[:])
	keyText, sigText := string(Append32(nil, &key)), string(Append64(nil, &sig))
	buf := make([]byte, 0, Max64)
	for name, f := range map[string]func(){
		"encode32/ours":    func() { buf = Append32(buf[:0], &key) },
		"encode32/mr-tron": func() { _ = other.Encode(key[:]) },
		"encode64/ours":    func() { buf = Append64(buf[:0], &sig) },
		"encode64/mr-tron": func() { _ = other.Encode(sig[:]) },
		"decode32/ours":    func() { _ = Decode32(&key, keyText) },
		"decode32/mr-tron": func() { _, _ = other.Decode(keyText) },
		"decode64/ours":    func() { _ = Decode64(&sig, sigText) },
		"decode64/mr-tron": func() { _, _ = other.Decode(sigText) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
