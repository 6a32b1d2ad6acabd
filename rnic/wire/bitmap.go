package wire

import (
	"fmt"
	"strings"
)

// Bitmap is the payload of a NAK for a PSN sequence error between two ends that
// set [BTH.Selective]: bit i, counted from the lowest of the first byte, says
// that the responder keeps the packet i behind the missing one, whose PSN the
// NAK has. All bits of a READ request are set, which stands for as many PSNs as
// its answer has packets. Nobody else sends such a payload.
type Bitmap []byte

// Has reports bit i, 0 … 8·len(m)−1.
func (m Bitmap) Has(i int) bool { return m[i/8]>>(i%8)&1 != 0 }

// Set sets bit i, 0 … 8·len(m)−1.
func (m Bitmap) Set(i int) { m[i/8] |= 1 << (i % 8) }

// Len returns one more than the highest bit that is set, 0 if none is.
func (m Bitmap) Len() int {
	for i := len(m)*8 - 1; i >= 0; i-- {
		if m.Has(i) {
			return i + 1
		}
	}
	return 0
}

// String lists the bits that are set: "+1 +3-7".
func (m Bitmap) String() string {
	var runs []string
	for i, n := 0, m.Len(); i < n; i++ {
		if !m.Has(i) {
			continue
		}
		first := i
		for i+1 < n && m.Has(i+1) {
			i++
		}
		if i == first {
			runs = append(runs, fmt.Sprintf("+%d", i))
		} else {
			runs = append(runs, fmt.Sprintf("+%d-%d", first, i))
		}
	}
	return strings.Join(runs, " ")
}

// Bitmap returns what the packet tells of kept packets, nil if nothing.
func (p *Packet) Bitmap() Bitmap {
	if p.Opcode != RCAck || !p.Selective || !p.AETH.Syndrome.IsNAK() || p.AETH.Syndrome.NAK() != NAKPSNSequence {
		return nil
	}
	return p.Payload
}
