package rnic

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Packets to queue pair 1 that are no management datagrams are dropped and
// counted.
func TestGSIDrops(t *testing.T) {
	net := sim.NewNetwork(sim.Options{})
	d := &testDevice{Device: newCMHost(t, net, link.Faults{}, cm.Config{}).dev}
	l, err := net.Attach(netip.AddrPort{})
	require.NoError(t, err)
	defer l.Close()
	good := wire.Packet{BTH: wire.BTH{Opcode: wire.UDSendOnly, PKey: wire.DefaultPKey, DestQPN: wire.GSIQPN},
		DETH: wire.DETH{QKey: wire.GSIQKey, SrcQPN: wire.GSIQPN}, Payload: make([]byte, wire.MADLen)}
	for _, spoil := range []func(p *wire.Packet){
		func(p *wire.Packet) { p.Opcode = wire.UDSendOnlyImm },
		func(p *wire.Packet) { p.Opcode = wire.RCSendOnly },
		func(p *wire.Packet) { p.PKey = 0x1234 },
		func(p *wire.Packet) { p.DETH.QKey++ },
		func(p *wire.Packet) { p.DETH.SrcQPN++ },
		func(p *wire.Packet) { p.Payload = p.Payload[:252] },
		func(p *wire.Packet) { p.Payload = make([]byte, 260) },
		func(*wire.Packet) {}, // this one is: the manager drops it
	} {
		p := good
		spoil(&p)
		require.NoError(t, l.Send([]link.Packet{{Peer: d.Addr(), Head: p.AppendHeaders(nil), Payload: p.Payload}}))
	}
	require.Eventually(t, func() bool { return d.counter(t, "drop_gsi")+d.counter(t, "cm_rcvd_mads") == 8 }, time.Minute, time.Millisecond)
	require.EqualValues(t, 7, d.counter(t, "drop_gsi"))
	require.EqualValues(t, 1, d.counter(t, "cm_drop_class"))
}
