package file

import "ledgerd/engine/ledger"

// keyInName returns the only public key in the name of a file.
func keyInName(name string) (found ledger.Opt[ledger.Pubkey]) {
	for len(name) > 0 {
		n := 0
		for n < len(name) && isAlphanumeric(name[n]) {
			n++
		}
		if k, err := ledger.ParsePubkey(name[:n]); err == nil {
			if found.Known && found.Value != k {
				return ledger.Opt[ledger.Pubkey]{}
			}
			found = ledger.Some(k)
		}
		name = name[max(n, 1):]
	}
	return found
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
