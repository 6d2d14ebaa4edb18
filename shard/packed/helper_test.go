package packed

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"ledgerd/engine/ledger"
)

// seeded returns a random source. LEDGERD_TEST_SEED repeats one run.
func seeded(t testing.TB, seed uint64) *rand.Rand {
	if text := os.Getenv("LEDGERD_TEST_SEED"); text != "" {
		fixed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("LEDGERD_TEST_SEED is %q, want a number", text)
		}
		seed = fixed
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func key(n int) ledger.Pubkey { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n))) }
