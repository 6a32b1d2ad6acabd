//go:build guest && linux

package guesttest

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// TestConnection: both flows, private data both ways, and that the queue pairs
// carry every operation that was agreed on.
func TestConnection(t *testing.T) {
	a, b := newSide(t), newSide(t)
	ctx := limited(t)
	l, err := b.ch.Listen(netip.AddrPortFrom(self, 0), 0, rdmacm.Options{})
	require.NoError(t, err)
	defer l.Close()
	require.NotZero(t, l.Addr().Port())

	id, err := a.ch.Resolve(ctx, netip.AddrPort{}, l.Addr(), rdmacm.Options{TOS: 0x40})
	require.NoError(t, err)
	defer id.Destroy()
	r, err := id.Route()
	require.NoError(t, err)
	require.Equal(t, self, r.Local.Addr())
	require.Equal(t, l.Addr(), r.Remote)
	name, err := id.Device()
	require.NoError(t, err)
	require.Equal(t, device, name)

	type accepted struct {
		req *rdmacm.Request
		qp  *conn
		err error
	}
	passive := make(chan accepted, 1)
	go func() {
		req, err := l.Accept(ctx)
		if err != nil {
			passive <- accepted{err: err}
			return
		}
		qp, err := b.newQP()
		if err == nil {
			err = req.Init(qp)
		}
		if err == nil {
			err = b.receive(qp)
		}
		if err == nil {
			err = req.Accept(ctx, qp, with("from the passive side"))
		}
		passive <- accepted{req, qp, err}
	}()
	qa := a.qp(t)
	peer, err := id.Connect(ctx, qa, with("from the active side"))
	require.NoError(t, err)
	require.Equal(t, "from the passive side", text(peer.Private))
	require.Len(t, peer.Private, abi.UCMAcceptData)
	p := <-passive
	require.NoError(t, p.err)
	defer p.req.Destroy()
	qb := p.qp
	require.Equal(t, "from the active side", text(p.req.Peer.Private))
	require.Len(t, p.req.Peer.Private, abi.UCMConnectData)
	require.Equal(t, qb.Num(), peer.QPN)
	require.Equal(t, qa.Num(), p.req.Peer.QPN)
	require.Equal(t, []uint8{2, 4}, []uint8{p.req.Peer.ResponderResources, p.req.Peer.InitiatorDepth}, "what may be granted")
	require.Equal(t, uint8(7), p.req.Peer.RetryCount)
	name, err = p.req.Device()
	require.NoError(t, err)
	require.Equal(t, device, name)
	back, err := p.req.Route()
	require.NoError(t, err)
	require.Equal(t, r.Local.Addr(), back.Remote.Addr())
	require.Equal(t, l.Addr(), back.Local)

	attr, err := qa.Query()
	require.NoError(t, err)
	require.Equal(t, abi.QPSRTS, attr.State)
	require.Equal(t, qb.Num(), attr.DestQPNum)
	require.Equal(t, uint8(0x40), attr.AV.TrafficClass)
	require.Equal(t, uint8(12), attr.MinRNRTimer)
	require.Equal(t, abi.AccessRemoteWrite|abi.AccessRemoteRead|abi.AccessRemoteAtomic, attr.AccessFlags&^abi.AccessLocalWrite)
	attr, err = qb.Query()
	require.NoError(t, err)
	require.Equal(t, abi.QPSRTS, attr.State)
	require.Equal(t, uint8(2), attr.MaxDestRdAtomic)
	require.Equal(t, uint8(2), attr.MaxRdAtomic)

	copy(a.buf, "sent")
	here := []verbs.SGE{{Addr: a.mr.Addr(), Length: 32, LKey: a.mr.LKey()}}
	require.NoError(t, qa.send(ctx, verbs.SendWR{Opcode: abi.WRSend, SGE: here}))
	wc, err := qb.completion(ctx)
	require.NoError(t, err)
	require.Equal(t, uint64(7), wc.ID)
	require.Equal(t, "sent", text(b.buf[:32]))
	copy(a.buf, "written")
	require.NoError(t, qa.send(ctx, verbs.SendWR{Opcode: abi.WRRDMAWrite, SGE: here, RemoteAddr: b.mr.Addr() + 1024, RKey: b.mr.RKey()}))
	require.Equal(t, "written", text(b.buf[1024:1056]))
	// The passive side's READ needs the access that the second INIT brought.
	require.NoError(t, qb.send(ctx, verbs.SendWR{Opcode: abi.WRRDMARead, RemoteAddr: a.mr.Addr(), RKey: a.mr.RKey(),
		SGE: []verbs.SGE{{Addr: b.mr.Addr() + 2048, Length: 32, LKey: b.mr.LKey()}}}))
	require.Equal(t, "written", text(b.buf[2048:2080]))

	require.NoError(t, id.Context().Err())
	require.NoError(t, id.Disconnect())
	<-p.req.Context().Done()
	require.ErrorContains(t, context.Cause(p.req.Context()), "peer disconnected")
	<-id.Context().Done()
	require.ErrorContains(t, context.Cause(id.Context()), "disconnected here")
	for _, end := range []*rdmacm.ID{id, p.req.ID} {
		ev, err := end.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, abi.UCMEventDisconnected, ev.Type)
	}
	for _, end := range []*rdmacm.ID{id, p.req.ID} {
		ev, err := end.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, abi.UCMEventTimewaitExit, ev.Type)
	}
	require.NoError(t, id.Destroy())
	require.NoError(t, p.req.Destroy())
	require.NoError(t, qa.close())
	require.NoError(t, qb.close())
}
