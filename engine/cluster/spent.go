package cluster

import (
	"encoding/binary"
	"errors"
	"time"
)

const (
	spentMagic  = "ldgS"
	spentFormat = 1
	spentBytes  = 20 // of one
	// shareEvery is how often a node tells what its clients spent: four times as often as it must be known.
	shareEvery = 250 * time.Millisecond
	// maxSpent is how many clients one message tells of, and maxSpentMessages how many messages there are at a time: what is beyond
	// is not told, and counted.
	maxSpent         = 2000
	maxSpentMessages = 8
)

// Spent is what a client spent at a node since the node told last.
type Spent struct {
	Client [16]byte // its address, IPv4 as IPv6
	Count  uint32
}

// Share tells the others what clients spend here, four times a second, until Close: spent returns what was spent since its last
// call, and others is told what each other node said, on a goroutine of the connection. Nothing is told twice; what is told
// while there is no connection is lost. It may be called once.
func (c *Cluster) Share(spent func() []Spent, others func([]Spent)) error {
	err := c.listen(".spent", func(b []byte) {
		process, all, err := decodeSpent(b)
		switch {
		case err != nil:
			c.stats.gossipRefused.Add(1)
		case process != c.process:
			others(all)
		}
	})
	if err != nil {
		return err
	}
	c.running.Go(func() {
		ticker := time.NewTicker(shareEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.tell(spent())
			case <-c.ctx.Done():
				return
			}
		}
	})
	return nil
}

// tell sends what was spent.
func (c *Cluster) tell(all []Spent) {
	for range maxSpentMessages {
		if len(all) == 0 {
			return
		}
		n := min(len(all), maxSpent)
		_ = c.conn.Publish(c.config.Stream+".spent", encodeSpent(c.process, all[:n]))
		all = all[n:]
	}
	c.stats.spentDropped.Add(uint64(len(all)))
}

// encodeSpent returns a message:
//
//	magic    4    "ldgS"
//	format   u8   1
//	process  u8 and bytes
//	clients  n times: address 16, count u32, little endian
func encodeSpent(process string, all []Spent) []byte {
	b := append(make([]byte, 0, len(spentMagic)+2+len(process)+spentBytes*len(all)), spentMagic...)
	b = append(b, spentFormat, byte(len(process)))
	b = append(b, process...)
	for i := range all {
		b = append(b, all[i].Client[:]...)
		b = binary.LittleEndian.AppendUint32(b, all[i].Count)
	}
	return b
}

var errNotSpent = errors.New("no message of what clients spent")

func decodeSpent(b []byte) (process string, all []Spent, err error) {
	const fixed = len(spentMagic) + 2
	if len(b) < fixed || string(b[:len(spentMagic)]) != spentMagic || b[len(spentMagic)] != spentFormat {
		return "", nil, errNotSpent
	}
	n := int(b[fixed-1])
	b = b[fixed:]
	if n == 0 || n > maxTextBytes || len(b) < n || (len(b)-n)%spentBytes != 0 || len(b)-n > spentBytes*maxSpent {
		return "", nil, errNotSpent
	}
	process, b = string(b[:n]), b[n:]
	all = make([]Spent, 0, len(b)/spentBytes)
	for ; len(b) > 0; b = b[spentBytes:] {
		all = append(all, Spent{[16]byte(b), binary.LittleEndian.Uint32(b[16:])})
	}
	return process, all, nil
}
