package dissect

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func ip4(protocol byte, payload []byte) []byte {
	b := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(payload)))
	return append(b, payload...)
}

func ip6(next byte, payload []byte) []byte {
	b := make([]byte, 40)
	b[0], b[6], b[7], b[23], b[39] = 0x60, next, 64, 1, 2
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	return append(b, payload...)
}

func udp(port uint16, payload []byte) []byte {
	b := []byte{0xc3, 0x50, byte(port >> 8), byte(port), 0, 0, 0, 0}
	binary.BigEndian.PutUint16(b[4:], uint16(8+len(payload)))
	return append(b, payload...)
}

func ether(kind uint16, payload []byte) []byte {
	return append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, byte(kind >> 8), byte(kind)}, payload...)
}

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// TestTunnels: a packet is found behind the headers of a tunnel, and its ICRC
// is right with the fields of the inner IP header.
func TestTunnels(t *testing.T) {
	v4, v6 := ipPacket(t, "rxe-6.1-uc-ud.pcap"), ipPacket(t, "rxe-6.1-ipv6.pcap")
	inner := ether(etherIPv4, v4)
	extended := func(next byte, header ...byte) []byte {
		return ip6(next, append(header, v6[40:]...))
	}
	for name, c := range map[string]struct {
		record []byte
		icrc   ICRC
	}{
		"VXLAN":            {ether(etherIPv4, ip4(17, udp(4789, cat([]byte{8, 0, 0, 0, 0, 0, 42, 0}, inner)))), OK},
		"VXLAN on IPv6":    {ether(etherIPv6, ip6(17, udp(4789, cat([]byte{8, 0, 0, 0, 0, 0, 42, 0}, ether(etherIPv6, v6))))), OK},
		"GENEVE":           {ether(etherIPv4, ip4(17, udp(6081, cat([]byte{0, 0, 0x65, 0x58, 0, 0, 42, 0}, inner)))), OK},
		"GRE":              {ether(etherIPv4, ip4(47, cat([]byte{0, 0, 8, 0}, v4))), OK},
		"NVGRE":            {ether(etherIPv4, ip4(47, cat([]byte{0x20, 0, 0x65, 0x58, 0, 0, 42, 1}, inner))), OK},
		"ERSPAN":           {ether(etherIPv4, ip4(47, cat([]byte{0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 0, 0, 0, 0, 0}, inner))), OK},
		"IP in IP":         {ether(etherIPv4, ip4(4, v4)), OK},
		"IPv6 in IPv4":     {ether(etherIPv4, ip4(41, v6)), OK},
		"IPv4 in IPv6":     {ether(etherIPv6, ip6(4, v4)), OK},
		"SRv6":             {ether(etherIPv6, ip6(43, cat([]byte{4, 2, 4, 0, 0, 0, 0, 0}, make([]byte, 16), v4))), OK},
		"MPLS":             {ether(0x8847, cat([]byte{0, 6, 0x40, 64, 0, 6, 0x41, 64}, v4)), OK},
		"PPPoE":            {ether(0x8864, cat([]byte{0x11, 0, 0, 7, byte((len(v4) + 2) >> 8), byte(len(v4) + 2), 0, 0x21}, v4)), OK},
		"LLC":              {ether(uint16(8+len(v4)), cat([]byte{0xaa, 0xaa, 3, 0, 0, 0, 8, 0}, v4)), OK},
		"hop by hop":       {ether(etherIPv6, extended(0, 17, 0, 1, 4, 0, 0, 0, 0)), Unchecked},
		"destination, too": {ether(etherIPv6, extended(0, 60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0)), Unchecked},
		"atomic fragment":  {ether(etherIPv6, extended(44, 17, 0, 0, 0, 0, 0, 0, 1)), Unchecked},
		"AH":               {ether(etherIPv6, extended(51, append([]byte{17, 4}, make([]byte, 22)...)...)), Unchecked},
	} {
		t.Run(name, func(t *testing.T) {
			got, r, err := all(pcap(t, linkEthernet, c.record, len(c.record)), 0)
			require.NoError(t, err)
			require.Len(t, got, 1, "%+v", r.Others().Counts())
			require.NoError(t, got[0].Err)
			require.Equal(t, c.icrc, got[0].ICRC)
			require.Equal(t, c.record, got[0].Record.Data)
			for n := range c.record {
				_, _, err := all(pcap(t, linkEthernet, c.record, n), 0)
				require.NoError(t, err)
			}
		})
	}
}

// TestTunnelledBundle: the packets of a bundle in a tunnel come with frames of
// their own, without the tunnel.
func TestTunnelledBundle(t *testing.T) {
	payload, sizes := packets(t, false, 9, 256, 3, 5)
	record := ip4(4, packed(false, 9, payload))
	got, _, err := all(pcap(t, linkRaw, record, len(record)), 0)
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i, p := range got {
		require.Equal(t, OK, p.ICRC)
		require.Equal(t, 20+8+sizes[i], p.Record.Length)
		require.Equal(t, linkRaw, p.Record.LinkType)
	}
}

// TestOthers: what holds no packet is counted by kind, and known or not
// understood.
func TestOthers(t *testing.T) {
	good := ipPacket(t, "rxe-6.1-uc-ud.pcap")
	later := bytes.Clone(good)
	later[7] = 1
	for _, c := range []struct {
		link       int
		record     []byte
		kind       string
		understood bool
	}{
		{linkEthernet, ether(etherRoCE1, make([]byte, 60)), "RoCEv1", false},
		{linkEthernet, ether(0x88b5, make([]byte, 60)), "Ethernet, EtherType 0x88b5", false},
		{linkEthernet, ether(etherIPv4, ip4(17, udp(4789, cat([]byte{8, 0, 0, 0, 0, 0, 42, 0}, ether(etherRoCE1, make([]byte, 60)))))), "RoCEv1", false},
		{linkRaw, ip4(253, make([]byte, 20)), "IPv4, protocol 253", false},
		{linkRaw, later, "Fragment", false},
		{197, make([]byte, 80), "link type 197", false},
		{linkRaw, ip4(6, []byte{0, 80, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0}), "TCP", true},
		{linkRaw, ip4(17, udp(53, []byte("no DNS"))), "UDP", true},
	} {
		got, r, err := all(pcap(t, c.link, c.record, len(c.record)), 0)
		require.NoError(t, err)
		require.Empty(t, got)
		list := r.Others().Counts()
		require.Len(t, list, 1)
		require.Equal(t, Count{Kind{c.kind, c.understood}, 1}, list[0])
		require.Equal(t, !c.understood, r.Others().Strange == 1)
	}
	var many Others
	for i := range 1000 {
		many.add(Kind{Name: string(rune(i))})
	}
	require.Len(t, many.Counts(), maxKinds+1)
	require.EqualValues(t, 1000, many.Strange)
}
