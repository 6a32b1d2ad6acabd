package abi

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

func TestSockaddr(t *testing.T) {
	for _, c := range []struct {
		addr string
		size uint16
		head []byte
		back string
	}{
		{"10.1.2.3:7471", 16, []byte{2, 0, 0x1d, 0x2f, 10, 1, 2, 3, 0}, ""},
		{"[::ffff:10.1.2.3]:1", 16, []byte{2, 0, 0, 1, 10, 1, 2, 3}, "10.1.2.3:1"},
		{"[2001:db8::5]:7472", 28, []byte{10, 0, 0x1d, 0x30, 0, 0, 0, 0, 0x20, 1, 0xd, 0xb8}, ""},
		{"[fe80::1%7]:9", 28, []byte{10, 0, 0, 9, 0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0, 0, 0}, ""},
		{"0.0.0.0:0", 16, []byte{2, 0, 0, 0}, ""},
		{"[::]:0", 28, []byte{10, 0}, ""},
	} {
		s := SockaddrStorage{127: 0xa5}
		a := netip.MustParseAddrPort(c.addr)
		size := must.Get(s.Set(a))(t)
		require.Equal(t, c.size, size)
		require.Equal(t, c.head, s[:len(c.head)], c.addr)
		require.Zero(t, s[127])
		got := must.Get(s.AddrPort())(t)
		if c.back != "" {
			a = netip.MustParseAddrPort(c.back)
		}
		require.Equal(t, a, got)
	}
	var s SockaddrStorage
	must.Fail(s.AddrPort())(t, ErrFamily)
	must.Fail(s.Set(netip.AddrPort{}))(t, ErrFamily)
	must.Fail(s.Set(netip.MustParseAddrPort("[fe80::1%eth0]:9")))(t, ErrFamily)
	must.Fail(s.GID())(t, ErrFamily)
	s = SockaddrStorage{0: AFIB, 8: 0xfe, 23: 1}
	gid := must.Get(s.GID())(t)
	require.Equal(t, [16]byte{0: 0xfe, 15: 1}, gid)
}

// TestSockaddrIn6: an address of the older commands, as the newer have it.
func TestSockaddrIn6(t *testing.T) {
	for family, want := range map[byte]uint16{0: 0, AFInet: SockaddrInSize, AFInet6: SockaddrIn6Size, AFIB: SockaddrIn6Size, 99: SockaddrIn6Size} {
		old := SockaddrIn6{0: family, 27: 0xa5}
		all, size := old.Storage()
		require.Equal(t, want, size, family)
		require.Equal(t, old, all.In6())
		require.Zero(t, [100]byte(all[28:]))
	}
}

func TestUCMEventParam(t *testing.T) {
	var ev UCMEventResp
	conn := UCMConnParam{QPNum: 0x123456, PrivateDataLen: 3, RNRRetryCount: 7}
	copy(conn.PrivateData[:], "abc")
	conn.Put(ev.Param[:])
	got := ev.Conn()
	require.Equal(t, conn, got)
	require.Equal(t, "abc", string(got.Private()))
	require.EqualValues(t, 0x123456, ev.UD().QPNum)
}

func TestAHAttrAsQPDest(t *testing.T) {
	ah := AHAttr{DGID: [16]byte{15: 9}, FlowLabel: 1, SGIDIndex: 2, HopLimit: 3, TrafficClass: 4, DLID: 5, SL: 6, SrcPathBits: 7, StaticRate: 8, IsGlobal: 1, PortNum: 9}
	require.Equal(t, QPDest{DGID: [16]byte{15: 9}, FlowLabel: 1, SGIDIndex: 2, HopLimit: 3, TrafficClass: 4, DLID: 5, SL: 6, SrcPathBits: 7, StaticRate: 8, IsGlobal: 1, PortNum: 9}, ah.QPDest())
}

func TestUCMNames(t *testing.T) {
	require.Equal(t, "CONNECT_REQUEST", UCMEventConnectRequest.String())
	require.Equal(t, "UCMEvent(77)", UCMEvent(77).String())
	require.Equal(t, "INVALID_SERVICE_ID", UCMRejInvalidServiceID.String())
	require.Equal(t, "GET_EVENT", UCMCmdGetEvent.String())
	require.Equal(t, "TCP", UCMPSTCP.String())
}
