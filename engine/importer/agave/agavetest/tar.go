package agavetest

import "fmt"

// tarFile appends a file as a block of 512 bytes, ustar, and its content filled up to such blocks.
func tarFile(out []byte, name string, content []byte) []byte {
	out = tarHead(out, name, '0', len(content))
	out = append(out, content...)
	return append(out, make([]byte, -len(content)&511)...)
}

func tarDir(out []byte, name string) []byte { return tarHead(out, name, '5', 0) }

func tarHead(out []byte, name string, kind byte, size int) []byte {
	h := make([]byte, 512)
	copy(h, name)
	copy(h[100:], "0000644\x000000000\x000000000\x00")
	copy(h[124:], fmt.Sprintf("%011o\x0000000000000\x00", size))
	copy(h[148:], "        ")
	h[156] = kind
	copy(h[257:], "ustar\x0000")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return append(out, h...)
}
