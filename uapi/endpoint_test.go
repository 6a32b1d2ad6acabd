package uapi

import (
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// endpoint4 in both of its forms, written down by hand after the layout in
// Endpoint's documentation.
var (
	endpoint4     = Endpoint{Addr: netip.MustParseAddrPort("127.0.0.1:4791"), QPN: 0x11, PSN: 0x900000, MTU: 4096, MaxRdAtomic: 16}
	endpoint4Text = "rc1,127.0.0.1:4791,qpn=17,psn=9437184,mtu=4096,rd=16"
	endpoint4Hex  = "52444550" + "01" + "28" + "12b7" + "00000000000000000000ffff7f000001" + "00000011" + "00900000" + "1000" + "10" + "00" + "00000000"
)

func TestEndpointForms(t *testing.T) {
	b := must.Get(endpoint4.MarshalBinary())(t)
	require.Equal(t, endpoint4Hex, hex.EncodeToString(b))
	require.Equal(t, endpoint4Text, endpoint4.String())

	var got Endpoint
	require.NoError(t, got.UnmarshalBinary(b))
	require.Equal(t, endpoint4, got)
	got = must.Get(ParseEndpoint(" rc1,127.0.0.1:4791,qpn=0x11,psn=0x900000,mtu=4096,rd=16\n"))(t)
	require.Equal(t, endpoint4, got)
}

func TestEndpointRoundTrip(t *testing.T) {
	for _, e := range []Endpoint{
		endpoint4,
		{Addr: netip.MustParseAddrPort("[fe80::1]:1"), QPN: 1, MTU: 256},
		{Addr: netip.MustParseAddrPort("[2001:db8::1]:65535"), QPN: max24, PSN: max24, MTU: 1024, MaxRdAtomic: maxRdAtomic},
	} {
		b := must.Get(e.MarshalBinary())(t)
		var fromBinary, fromJSON Endpoint
		require.NoError(t, fromBinary.UnmarshalBinary(b))
		require.Equal(t, e, fromBinary)
		text := must.Get(json.Marshal(e))(t)
		require.NoError(t, json.Unmarshal(text, &fromJSON))
		require.Equal(t, e, fromJSON)
	}
}

func TestEndpointPrefixesAreErrors(t *testing.T) {
	b := must.Get(hex.DecodeString(endpoint4Hex))(t)
	var e Endpoint
	for n := range b {
		require.ErrorIs(t, e.UnmarshalBinary(b[:n]), syscall.EINVAL, "%d bytes", n)
	}
	require.ErrorIs(t, e.UnmarshalBinary(append(b, 0)), syscall.EINVAL)
	for n := range endpoint4Text {
		if n == len(endpoint4Text)-1 {
			continue // rd=1 is one as well
		}
		_, err := ParseEndpoint(endpoint4Text[:n])
		if err == nil {
			// A number cut short may still be in range; only the last one is.
			t.Errorf("%q was accepted", endpoint4Text[:n])
		}
	}
	require.Zero(t, e)
}

func TestEndpointRefuses(t *testing.T) {
	for text, errno := range map[string]syscall.Errno{
		"": syscall.EINVAL,
		"rc2,127.0.0.1:4791,qpn=17,psn=1,mtu=4096,rd=16":         syscall.EPROTONOSUPPORT,
		"rc1,127.0.0.1,qpn=17,psn=1,mtu=4096,rd=16":              syscall.EINVAL,
		"rc1,localhost:4791,qpn=17,psn=1,mtu=4096,rd=16":         syscall.EINVAL,
		"rc1,0.0.0.0:4791,qpn=17,psn=1,mtu=4096,rd=16":           syscall.EINVAL,
		"rc1,[ff02::1]:4791,qpn=17,psn=1,mtu=4096,rd=16":         syscall.EINVAL,
		"rc1,[fe80::1%eth0]:4791,qpn=17,psn=1,mtu=4096,rd=16":    syscall.EINVAL,
		"rc1,127.0.0.1:0,qpn=17,psn=1,mtu=4096,rd=16":            syscall.EINVAL,
		"rc1,127.0.0.1:4791,qpn=0,psn=1,mtu=4096,rd=16":          syscall.EINVAL,
		"rc1,127.0.0.1:4791,qpn=0x1000000,psn=1,mtu=4096,rd=16":  syscall.EINVAL,
		"rc1,127.0.0.1:4791,qpn=17,psn=0x1000000,mtu=4096,rd=16": syscall.EINVAL,
		"rc1,127.0.0.1:4791,qpn=17,psn=1,mtu=1500,rd=16":         syscall.EINVAL,
		"rc1,127.0.0.1:4791,qpn=17,psn=1,mtu=4096,rd=256":        syscall.EINVAL,
		"rc1,127.0.0.1:4791,psn=17,qpn=1,mtu=4096,rd=16":         syscall.EINVAL,
		"rc1,127.0.0.1:4791,qpn=17,psn=1,mtu=4096,rd=-1":         syscall.EINVAL,
		endpoint4Text + ",":        syscall.EINVAL,
		strings.Repeat("r", 10000): syscall.EINVAL,
	} {
		_, err := ParseEndpoint(text)
		require.ErrorIs(t, err, errno, text)
	}
	b := must.Get(hex.DecodeString(endpoint4Hex))(t)
	for at, errno := range map[int]syscall.Errno{0: syscall.EINVAL, 4: syscall.EPROTONOSUPPORT, 5: syscall.EINVAL, 24: syscall.EINVAL, 28: syscall.EINVAL, 32: syscall.EINVAL, 35: syscall.EINVAL, 39: syscall.EINVAL} {
		bad := append([]byte(nil), b...)
		bad[at] = 0x77
		var e Endpoint
		require.ErrorIs(t, e.UnmarshalBinary(bad), errno, "byte %d", at)
		require.Zero(t, e)
	}
	_, err := Endpoint{}.MarshalText()
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = Endpoint{}.MarshalBinary()
	require.ErrorIs(t, err, syscall.EINVAL)
}

func FuzzEndpointText(f *testing.F) {
	f.Add(endpoint4Text)
	f.Add("rc1,[fe80::1]:1,qpn=1,psn=0,mtu=256,rd=0")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEndpoint(text)
		if err != nil {
			require.Zero(t, e)
			return
		}
		again := must.Get(ParseEndpoint(e.String()))(t)
		require.Equal(t, e, again)
	})
}

func FuzzEndpointBinary(f *testing.F) {
	b, _ := hex.DecodeString(endpoint4Hex)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Endpoint
		if err := e.UnmarshalBinary(b); err != nil {
			require.Zero(t, e)
			return
		}
		again := must.Get(e.MarshalBinary())(t)
		require.Equal(t, b, again)
	})
}
