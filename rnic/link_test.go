package rnic

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/linktest"
)

// roundTrip writes, reads back and sends, once for each path MTU that fits.
func roundTrip(t *testing.T, a, b *testDevice) {
	const n = 300_000
	a.mem.fill(7)
	for i, m := range []abi.MTU{abi.MTU256, abi.MTU1024, abi.MTU4096} {
		at := defaults()
		at.mtu, at.timeout = m, 18 // a second: the machine may be busy
		q, p := joined(t, a, b, at)
		to := i * n
		p.postRecv(3)
		wr := write(a, b, 1, 0, to, n)
		wr.Opcode = abi.WRRDMAWriteWithImm
		q.post(wr)
		q.send.waitStatus(1, abi.WCSuccess)
		p.recv.waitStatus(3, abi.WCSuccess)
		require.Equal(t, a.mem.buf[:n], b.mem.buf[to:to+n])
		p.post(&ring.SendWR{ID: 2, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, SGE: []ring.SGE{b.mem.sge(1<<20, n)}, RemoteAddr: a.mem.at, RKey: a.mem.mr.RKey()})
		p.send.waitStatus(2, abi.WCSuccess)
		require.Equal(t, a.mem.buf[:n], b.mem.buf[1<<20:1<<20+n])
		require.NoError(t, q.qp.Destroy())
		require.NoError(t, p.qp.Destroy())
	}
}

func TestOverUDP(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "::1"} {
		t.Run(addr, func(t *testing.T) {
			a, b := connected(t, linktest.UDP(t, addr), 2<<20, abi.MTU1024, qpOptions{})
			require.NotZero(t, dest(a.Device).DLID, "away from port 4791 the LID names the port")
			roundTrip(t, a, b)
			require.Zero(t, a.counter(t, "drop_icrc")+b.counter(t, "drop_icrc"))
		})
	}
}

func TestOverUDPWithFaults(t *testing.T) {
	l := linktest.UDP(t, "127.0.0.1")
	for i := range l {
		l[i] = link.WithFaults(l[i], link.Faults{Loss: 0.05, Reorder: 0.1, Dup: 0.01, Corrupt: 0.001, Delay: 100 * time.Microsecond, Seed: uint64(i)})
	}
	a, b := connected(t, l, 2<<20, abi.MTU4096, qpOptions{})
	roundTrip(t, a, b)
	require.NotZero(t, a.counter(t, "retransmitted_pkts"))
}

// Two queue pairs of one device, over the device's own link.
func TestLoopback(t *testing.T) {
	for name, l := range map[string]link.Link{"sim": linktest.Sim(t)[0], "udp": linktest.UDP(t, "127.0.0.1")[0]} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(t, l, 2<<20, qpOptions{})
			roundTrip(t, d, d)
		})
	}
}

func TestLinkLost(t *testing.T) {
	l := &linktest.Breakable{Link: newFixed("10.0.0.1:4791", 65507)}
	d := newDevice(t, l, 4096, qpOptions{})
	d.qp.connectTo(d.qp, defaults())
	d.qp.postRecv(5)
	d.qp.post(write(d, d, 1, 0, 8, 8))
	l.Broken.Store(true)
	l.Interrupt() // a Wait that blocks returns, so that the change is seen
	d.qp.send.waitStatus(1, abi.WCWRFlushErr)
	d.qp.recv.waitStatus(5, abi.WCWRFlushErr)
	require.Equal(t, abi.QPSErr, d.qp.qp.State())
	err := d.qp.qp.Doorbell()
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, linktest.ErrCut.Error())
	p, err := d.QueryPort(1)
	require.NoError(t, err)
	require.Equal(t, abi.PortDown, p.State)
}

// gate is a link whose sends wait.
type gate struct {
	link.Link
	open chan struct{}
}

func (g *gate) Send(batch []link.Packet) error {
	<-g.open
	return g.Link.Send(batch)
}

// A receiver destroys its queue pair as soon as it has the message, while its
// transmitter is busy elsewhere: the acknowledgement goes out nevertheless.
func TestDestroySendsAcknowledgement(t *testing.T) {
	for _, ender := range []string{"destroy", "close", "error"} {
		t.Run(ender, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{open: make(chan struct{})}
				b, a := newPair(t, pairOptions{tap: func(l link.Link) link.Link {
					g.Link = l
					return g
				}})
				busy, _ := joined(t, b, a, defaults())
				// b's transmitter hangs in the link with a packet of another
				// queue pair.
				go func() {
					_ = encodeSend(busy.sprod.Slot(0), 1, write(b, a, 1, 0, 0, 8))
					busy.sprod.Publish(1)
					_ = busy.qp.Doorbell()
				}()
				synctest.Wait()
				b.qp.postRecv(1)
				a.qp.post(&ring.SendWR{ID: 1, Opcode: abi.WRSend, Flags: abi.SendSignaled})
				b.qp.recv.waitStatus(1, abi.WCSuccess) // visible although the answer waits

				done := make(chan error)
				go func() {
					switch ender {
					case "destroy":
						done <- b.qp.qp.Destroy()
					case "close":
						done <- b.Close()
					case "error":
						done <- b.qp.qp.Modify(&abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState)
					}
				}()
				synctest.Wait()
				close(g.open)
				require.NoError(t, <-done)
				a.qp.send.waitStatus(1, abi.WCSuccess)
				require.Zero(t, a.counter(t, "retransmitted_pkts"))
			})
		})
	}
}
