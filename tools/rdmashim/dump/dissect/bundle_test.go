package dissect

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

// packed puts UDP payloads into one IP packet, as a system holds it that leaves
// taking apart to the card.
func packed(v6 bool, id uint16, payload []byte) []byte {
	n := len(payload) + 8
	var b []byte
	if v6 {
		b = append([]byte{0x60, 0, 0, 0, byte(n >> 8), byte(n), 17, 64}, make([]byte, 32)...)
		b[23], b[39] = 1, 2
	} else {
		b = []byte{0x45, 0, byte((n + 20) >> 8), byte(n + 20), byte(id >> 8), byte(id), 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
	}
	b = append(b, 0x12, 0xb7, 0x12, 0xb7, byte(n>>8), byte(n), 0, 0)
	return append(b, payload...)
}

// packets makes WRITEs with ICRCs as they are on the wire: first, middles of
// the MTU, last.
func packets(t testing.TB, v6 bool, id uint16, mtu, count, last int) (payload []byte, sizes []int) {
	src, dst := netip.MustParseAddrPort("10.0.0.1:4791"), netip.MustParseAddrPort("10.0.0.2:4791")
	if v6 {
		src, dst = netip.MustParseAddrPort("[::1]:4791"), netip.MustParseAddrPort("[::2]:4791")
	}
	flow := must.Get(wire.NewFlow(src, dst, true))(t)
	for i := range count {
		p := wire.Packet{BTH: wire.BTH{Opcode: wire.RCWriteMiddle, PKey: wire.DefaultPKey, DestQPN: 0x11, PSN: wire.PSN(i)}}
		n := mtu
		if i == count-1 {
			p.Opcode, n = wire.RCWriteLast, last
		}
		p.Payload = bytes.Repeat([]byte{byte(i)}, n)
		p.Pad = wire.PadLen(n)
		b := p.Append(nil)
		b = wire.AppendICRC(b, flow.ICRC(id+uint16(i), b))
		payload, sizes = append(payload, b...), append(sizes, len(b))
	}
	return payload, sizes
}

// one is all for a file made of one record.
func one(t *testing.T, ip []byte) []Packet {
	t.Helper()
	got, _, err := all(pcap(t, linkRaw, ip, len(ip)), 0)
	require.NoError(t, err)
	return got
}

// TestBundle takes apart frames that hold several packets, of any MTU and last
// length.
func TestBundle(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, c := range []struct{ mtu, count, last int }{{4096, 15, 4096}, {4096, 3, 1}, {1024, 7, 1023}, {256, 2, 0}, {64, 9, 3}, {0, 4, 0}} {
			payload, sizes := packets(t, v6, 0xfffe, c.mtu, c.count, c.last)
			ip := packed(v6, 0xfffe, payload)
			got := one(t, ip)
			require.Len(t, got, c.count, "%+v", c)
			for i, p := range got {
				require.NoError(t, p.Err)
				require.Equal(t, OK, p.ICRC, "%+v packet %d", c, i)
				require.Equal(t, sizes[i], p.Length)
				require.Equal(t, wire.PSN(i), p.Wire.PSN)
				require.Equal(t, 1, p.Number)
			}
			// The second packet is right where the first was damaged.
			if c.count > 2 {
				ip[len(ip)-len(payload)+wire.BTHLen-1] ^= 1
				got = one(t, ip)
				require.Len(t, got, c.count, "%+v, damaged", c)
				require.Equal(t, Bad, got[0].ICRC)
				require.Equal(t, OK, got[1].ICRC)
			}
		}
	}
}

// TestBundleRecord: each packet comes with a frame of its own that is read as
// the same packet, with right IP and UDP checksums.
func TestBundleRecord(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		payload, _ := packets(t, v6, 9, 256, 3, 5)
		ip := packed(v6, 9, payload)
		r := NewSource(&once{Record{Data: ip, Length: len(ip), LinkType: linkRaw}}, 0)
		for i := range 3 {
			var p Packet
			require.NoError(t, r.Next(&p))
			again := one(t, p.Record.Data)
			require.Len(t, again, 1)
			require.Equal(t, OK, again[0].ICRC)
			require.Equal(t, wire.PSN(i), again[0].Wire.PSN)
			require.Equal(t, len(p.Record.Data), p.Record.Length)
			if b := p.Record.Data; v6 {
				require.EqualValues(t, 0xffff, wire.Fold(wire.Sum(wire.Sum(17+uint64(len(b)-40), b[8:40]), b[40:])))
			} else {
				require.EqualValues(t, 0xffff, wire.Fold(wire.Sum(0, b[:20])))
				require.EqualValues(t, 9+i, binary.BigEndian.Uint16(b[4:]))
			}
		}
	}
}

type once struct{ rec Record }

func (o *once) Next() (Record, error) {
	rec := o.rec
	o.rec = Record{}
	return rec, nil
}

// A single packet stays one, whole or damaged, and its record is the file's.
func TestNoBundle(t *testing.T) {
	for _, name := range recordings(t) {
		b := must.Get(os.ReadFile(name))(t)
		frames := must.Get(wiretest.Read(b))(t)
		r := must.Get(NewReader(bytes.NewReader(b), 0, MaxUnzipped))(t)
		for range frames {
			var p Packet
			require.NoError(t, r.Next(&p))
			require.Equal(t, p.Record.Length, len(p.Record.Data))
			require.True(t, bytes.HasSuffix(p.Record.Data, binary.LittleEndian.AppendUint32(nil, p.ICRCValue)) || len(p.Record.Data) == 60, name)
			require.True(t, p.Time.Equal(p.Record.Time))
		}
	}
	ip := ipPacket(t, "rxe-6.1-rc-mtu4096.pcap")
	ip[len(ip)-1] ^= 1
	got := one(t, ip)
	require.Len(t, got, 1)
	require.Equal(t, Bad, got[0].ICRC)
}
