package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

func TestBitmap(t *testing.T) {
	for _, c := range []struct {
		set  []int
		want string
	}{
		{nil, ""}, {[]int{0}, "+0"}, {[]int{31}, "+31"}, {[]int{1, 3, 4, 5, 9}, "+1 +3-5 +9"}, {[]int{7, 8}, "+7-8"},
	} {
		m := make(wire.Bitmap, 4)
		last := -1
		for _, i := range c.set {
			m.Set(i)
			require.True(t, m.Has(i))
			last = i
		}
		require.Equal(t, c.want, m.String())
		require.Equal(t, last+1, m.Len())
	}
}

// TestBitmapOfPackets: only a NAK for a sequence error of a selective end has
// one.
func TestBitmapOfPackets(t *testing.T) {
	p := wire.Packet{Payload: []byte{2}}
	p.Opcode, p.Selective, p.AETH.Syndrome = wire.RCAck, true, wire.SyndromeNAK(wire.NAKPSNSequence)
	require.Equal(t, "+1", p.Bitmap().String())
	for _, spoil := range []func(*wire.Packet){
		func(p *wire.Packet) { p.Selective = false },
		func(p *wire.Packet) { p.Opcode = wire.RCSendOnly },
		func(p *wire.Packet) { p.AETH.Syndrome = wire.SyndromeNAK(wire.NAKInvalidRequest) },
		func(p *wire.Packet) { p.AETH.Syndrome = wire.SyndromeRNR(1) },
		func(p *wire.Packet) { p.AETH.Syndrome = wire.SyndromeACK(wire.NoCredits) },
		func(p *wire.Packet) { p.Payload = nil },
	} {
		q := p
		spoil(&q)
		require.Empty(t, q.Bitmap())
	}
}
