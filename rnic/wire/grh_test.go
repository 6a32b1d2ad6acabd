package wire_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

func TestGRH(t *testing.T) {
	for _, c := range []struct {
		name string
		h    wire.GRH
		want string
	}{
		{"IPv6", wire.GRH{
			Src: netip.MustParseAddr("fe80::1"), Dst: netip.MustParseAddr("fd00:99::2"),
			TrafficClass: 0xb8, FlowLabel: 0x12345, PayloadLen: 0x0102, NextHeader: 17, HopLimit: 64,
		}, "6b812345 0102 11 40 fe80000000000000 0000000000000001 fd00009900000000 0000000000000002"},
		// The IPv4 header is the example of RFC 1071 calculators: its checksum
		// is known to be b861.
		{"IPv4", wire.GRH{
			Src: netip.MustParseAddr("192.168.0.1"), Dst: netip.MustParseAddr("192.168.0.199"),
			PayloadLen: 0x73 - 20, NextHeader: 17, HopLimit: 64,
		}, "0000000000000000000000000000000000000000 4500 0073 0000 4000 4011 b861 c0a80001 c0a800c7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := unhex(t, c.want)
			require.Len(t, want, wire.GRHLen)
			require.Equal(t, want, c.h.Append(dirty(wire.GRHLen)))
		})
	}
}

func TestGRHForms(t *testing.T) {
	v4 := wire.GRH{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), TrafficClass: 0x6a, NextHeader: 17, HopLimit: 1}
	mapped := v4
	mapped.Src, mapped.Dst = netip.AddrFrom16(v4.Src.As16()), netip.AddrFrom16(v4.Dst.As16())
	require.Equal(t, v4.Append(nil), mapped.Append(nil))
	require.Len(t, (&wire.GRH{}).Append(nil), wire.GRHLen, "the zero header does not panic")
	require.Len(t, (&wire.GRH{Src: v4.Src}).Append(nil), wire.GRHLen)
}
