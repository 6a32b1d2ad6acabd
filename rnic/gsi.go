package rnic

import (
	"math"

	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// gsi is queue pair 1, the general services interface (IBA 10.2.4), and behind
// it the communication manager. All of it is guarded by Device.mu.
type gsi struct {
	cm    *cm.Manager
	users cmUsers
	sink  func(cm.Event)
	psn   wire.PSN // of the next packet
	drop  uint64   // packets that are no management datagrams
}

// newGSI makes the manager of a device with the identity that only the device
// knows.
func newGSI(c cm.Config, d *Device, random cm.Random) gsi {
	c.CAGUID, c.Random, c.UDPPort, c.MTU = d.guid, random, d.caps.Local.Port(), uint8(d.mtu)
	c.PeerLeft = d.peerLeft
	return gsi{
		cm: cm.New(c), sink: d.dispatch,
		users: cmUsers{listeners: make(map[cm.ListenerID]driver.CMListenEvents), conns: make(map[wire.CommID]driver.CMEvents)},
	}
}

// withCM gives the device's communication manager to do. When do has returned,
// the messages that it asked for are sent and timed. The error is do's, or that
// of a closed or broken device (ENODEV, EIO). Events are raised with the device
// locked.
//
// The program waits for no completion then, but for the manager's event, or for
// a request; so the listener comes back at once where a connection's reader has
// led.
func (d *Device) withCM(do func(now cm.Time, m *cm.Manager) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return err
	}
	err := do(cm.Time(d.now()), d.gsi.cm)
	d.drive.Summon()
	d.serveChanged(doorbellBatches)
	return err
}

// receive takes a packet to queue pair 1. Preconditions, here and below: the
// device's mu is held.
func (g *gsi) receive(now engine.Time, from *link.Packet, p *wire.Packet) {
	switch {
	case p.Opcode != wire.UDSendOnly, engine.CheckDatagram(p, wire.GSIQKey) != engine.Accepted, p.DETH.SrcQPN != wire.GSIQPN,
		len(p.Payload) != wire.MADLen:
		g.drop++
	default:
		g.cm.Receive(cm.Time(now), from.Peer, p.Payload)
	}
}

// fill puts datagrams into a batch while it has room.
func (g *gsi) fill(b *engine.Batch) {
	for g.cm.Pending() && !b.Full() {
		d, _ := g.cm.Transmit()
		b.AddDatagram(&engine.Datagram{Peer: d.To, DestQPN: wire.GSIQPN, SrcQPN: wire.GSIQPN, QKey: wire.GSIQKey, PSN: g.psn}, d.MAD[:])
		g.psn = g.psn.Next()
	}
}

// report hands out events.
func (g *gsi) report() {
	for g.sink != nil {
		e, ok := g.cm.Event()
		if !ok {
			return
		}
		g.sink(e)
	}
}

// first is when serve must be called, or noAlarm.
func (g *gsi) first() engine.Time {
	if t, ok := g.cm.NextTimeout(); ok {
		return engine.Time(t)
	}
	return math.MaxInt64
}

// close ends all connections, with one datagram to each peer.
func (g *gsi) close(now engine.Time) {
	g.sink = nil
	for _, id := range g.cm.Conns() {
		_ = g.cm.Destroy(cm.Time(now), id)
	}
}
