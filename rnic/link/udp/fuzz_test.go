package udp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/rdmashim/rdmashim/rnic/crc"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// FuzzVerify gives the check of a received datagram any bytes: a datagram that
// it takes has the ICRC that its identification gives, and the sender's
// datagrams are taken, with any identification.
func FuzzVerify(f *testing.F) {
	f.Add([]byte("0123456789ab0123"), uint16(0), uint16(0), true)
	f.Add(make([]byte, 64), uint16(1), uint16(0xffff), false)
	a, b := netip.MustParseAddrPort("10.0.0.1:4791"), netip.MustParseAddrPort("10.0.0.2:4791")
	c, d := netip.MustParseAddrPort("[fe80::1]:4791"), netip.MustParseAddrPort("[fe80::2]:4791")
	v4, err := wire.NewFlow(a, b, true)
	if err != nil {
		f.Fatal(err)
	}
	v6, err := wire.NewFlow(c, d, false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, id, guess uint16, is4 bool) {
		flow := v6
		if is4 {
			flow = v4
		}
		if len(data) >= wire.BTHLen+wire.ICRCLen && len(data) < 9000 {
			if found, ok := flow.Verify(data, guess); ok {
				at := len(data) - wire.ICRCLen
				if flow.ICRC(found, data[:at]) != binary.LittleEndian.Uint32(data[at:]) {
					t.Fatalf("identification %#x does not give this ICRC", found)
				}
			}
		}
		if len(data) < wire.BTHLen || len(data) > 5000 {
			return
		}
		p := link.Packet{Head: data[:wire.BTHLen], Payload: data[wire.BTHLen:]}
		whole := p.AppendWhole(nil, flow, id)
		if len(whole) != datagramLen(&p) {
			t.Fatalf("%d bytes, said were %d", len(whole), datagramLen(&p))
		}
		for _, sum := range []crc.Sum{{}, crc.Copy(make([]byte, len(p.Payload)), p.Payload)} {
			q := link.Packet{Frame: append(bytes.Clone(data), 1, 2, 3, 4, 5, 6, 7)[:len(whole)], Sum: sum}
			q.Head, q.Payload = q.Frame[:wire.BTHLen], q.Frame[wire.BTHLen:len(data)]
			if framed, _ := finish(nil, &q, flow, id); !bytes.Equal(framed, whole) || &framed[0] != &q.Frame[0] {
				t.Fatal("in its frame the packet is another")
			}
		}
		found, ok := flow.Verify(whole, guess)
		if !ok || is4 && found != id {
			t.Fatalf("identification %#x of %#x, %v", found, id, ok)
		}
		p.Flip = uint32(guess) + 1
		const variant = 4 // the byte of the BTH with FECN and BECN, which the ICRC leaves out
		if _, ok := flow.Verify(p.AppendWhole(nil, flow, id), id); ok && !is4 && int(guess)%(8*len(whole))/8 != variant {
			t.Fatal("a flipped bit is not noticed")
		}
	})
}
