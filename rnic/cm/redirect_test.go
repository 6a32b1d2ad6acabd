package cm_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// TestRedirectForged: a redirection is followed only if it comes from the UDP
// port that was asked, whole, and stays on the host. Everything else is a
// refusal like any other, and nothing is sent for it.
func TestRedirectForged(t *testing.T) {
	good := wire.ClassPortInfo{RedirectGID: wire.GIDOf(netip.MustParseAddr("10.0.0.2")), RedirectLID: 5000, RedirectQPN: wire.GSIQPN}
	with := func(change func(*wire.ClassPortInfo)) []byte {
		info := good
		change(&info)
		return info.Append(nil)
	}
	whole := with(func(*wire.ClassPortInfo) {})
	for _, c := range []struct {
		what   string
		from   uint16
		reason wire.RejectReason
		info   []byte
		follow bool
	}{
		{"right", wire.Port, wire.RejPortCMRedirect, whole, true},
		{"from another port of the host", 5000, wire.RejPortCMRedirect, whole, false},
		{"short", wire.Port, wire.RejPortCMRedirect, whole[:71], false},
		{"without information", wire.Port, wire.RejPortCMRedirect, nil, false},
		{"another reason", wire.Port, wire.RejPortRedirect, whole, false},
		{"to another host", wire.Port, wire.RejPortCMRedirect, with(func(i *wire.ClassPortInfo) { i.RedirectGID[15]++ }), false},
		{"to another queue pair", wire.Port, wire.RejPortCMRedirect, with(func(i *wire.ClassPortInfo) { i.RedirectQPN = 2 }), false},
		{"to itself", wire.Port, wire.RejPortCMRedirect, with(func(i *wire.ClassPortInfo) { i.RedirectLID = wire.PermissiveLID }), false},
	} {
		w, a, b := twoHosts(t)
		id, err := a.m.Connect(w.now, a.params(b, 1, "please"))
		require.NoError(t, err)
		asked, ok := a.m.Transmit()
		require.True(t, ok)
		rej := wire.REJ{CommIDs: wire.CommIDs{RemoteCommID: id}, Reason: c.reason, InfoLen: uint8(len(c.info))}
		copy(rej.Info[:], c.info)
		h := wire.CMHeader(binary.BigEndian.Uint64(asked.MAD[8:]), wire.AttrREJ)
		a.m.Receive(w.now, netip.AddrPortFrom(b.addr.Addr(), c.from), rej.Append(h.Append(nil)))
		again, sent := a.m.Transmit()
		require.Equal(t, c.follow, sent, c.what)
		if !sent {
			require.Equal(t, cm.Idle, a.m.State(id), c.what)
			continue
		}
		require.Equal(t, "10.0.0.2:5000", again.To.String())
		var first, second wire.REQ
		require.NoError(t, first.Parse(asked.MAD[wire.MADHeaderLen:]))
		require.NoError(t, second.Parse(again.MAD[wire.MADHeaderLen:]))
		require.EqualValues(t, 5000, second.Primary.RemoteLID)
		second.Primary.RemoteLID = first.Primary.RemoteLID
		require.Equal(t, first, second, "the request is the same but for where it goes")
		require.EqualValues(t, 1, a.m.Counters().Redirects)
	}
}
