package rnic

import (
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// meet looks for the peer of a connection that is about to begin, on this host.
// The way is chosen before the queue pair's first packet and stays, so that no
// packet overtakes another. Preconditions: d.mu is not held, since meeting
// waits for the peer's process.
func (q *QP) meet(a *abi.ModifyQP, mask abi.QPAttrMask) (device uint64) {
	peer, ok := q.begins(a, mask)
	if !ok || q.d.near == nil {
		return 0
	}
	return q.d.near.Meet(netip.AddrPortFrom(wire.Bare(peer.Addr()), peer.Port()))
}

// privateRoom is the device's for the peer of a connection that is about to
// begin. Preconditions: as meet's, since it asks the system.
func (q *QP) privateRoom(a *abi.ModifyQP, mask abi.QPAttrMask, near bool) int {
	peer, ok := q.begins(a, mask)
	if !ok {
		return 0
	}
	return q.d.privateRoom(peer.Addr(), a.PathMTU, near)
}

// begins returns the peer of a reliable connection that is about to begin.
func (q *QP) begins(a *abi.ModifyQP, mask abi.QPAttrMask) (peer netip.AddrPort, ok bool) {
	const begins = abi.QPMaskState | abi.QPMaskAV
	if _, rc := q.engine.(*engine.QP); !rc || mask&begins != begins || a.QPState != abi.QPSRTR {
		return peer, false
	}
	peer, err := q.d.peer(&a.Dest)
	return peer, err == nil && !peer.Addr().IsMulticast()
}

// transmit fills the batch with q's packets, for the way that q takes.
// Preconditions, here and below: the device's mu is held.
func (q *QP) transmit(now engine.Time) (more bool) {
	from := len(q.d.batch.Packets)
	more = q.engine.Transmit(now, q.d.batch)
	if q.d.near != nil && q.near == 0 {
		for i := range q.d.batch.Packets[from:] {
			q.d.batch.Packets[from+i].Far = true
		}
	}
	return more
}

// share lets near devices read a region's memory where it lies, if that can be,
// which far memory cannot: packets to them lend it. It follows unshare, if it
// was shared before.
func (d *Device) share(r *mem.Region, memory driver.Memory) {
	if d.near == nil || memory.Far != nil {
		return
	}
	if l := d.near.Lease(memory.Bytes); l != nil {
		r.SetTag(l)
	}
}

// unshare ends that. When it returns no peer reads the memory any more.
func (d *Device) unshare(r *mem.Region) {
	if l, ok := r.Tag().(*wire.Lease); ok {
		r.SetTag(nil)
		d.near.Recall(l)
	}
}

// nearby is the way of a queue pair's packets to a peer on this host.
type nearby struct {
	near  uint64      // the peer's device, if it was met (link.Near)
	lease *wire.Lease // by which payloads are lent to it; nil: by none
}

// takeWay sends the queue pair's packets to a near device, or with 0 to none.
// Payloads are lent to that.
func (q *QP) takeWay(near uint64) {
	q.quiesce()
	q.near = near
	rc, ok := q.engine.(*engine.QP)
	if ok && near != 0 {
		q.lease = new(wire.Lease)
		rc.SetLease(q.lease)
	}
	if ok {
		rc.SetLossless(near != 0 && link.Link(q.d.near) == q.d.link)
	}
}

// quiesce takes back what the queue pair has lent: its requests are about to be
// flushed or forgotten. When it returns no peer reads their memory any more.
func (q *QP) quiesce() {
	if q.lease == nil {
		return
	}
	q.engine.(*engine.QP).SetLease(nil)
	q.d.near.Recall(q.lease)
	q.lease = nil
}

const (
	// goneBatches bounds the batches read from a device that has gone: more
	// than its ring holds.
	goneBatches = 1024
	// goneLooks is how often in a row nothing must be found then. A link spares
	// looks at its socket, where the device's last packets are if it sent by
	// UDP: its own meeting may have failed.
	goneLooks = 64
)

// goneGrace is how long requests of a queue pair without connection manager
// wait for a near device that has gone. On a wire their silence lasts for all
// retries: 537 ms with the attributes of rdma-core's examples. A busy program
// reads its last completions meanwhile, and may want no others: two programs
// that count messages end while the slower one's surplus is on the way.
const goneGrace = 500 * time.Millisecond

// peerGone is called when a near device has gone. Once all that it sent was
// received, its connections end, as a kernel's DREQ ends them when a process
// has gone, and the requests that wait for it fail: those of connections now,
// others after goneGrace. A queue pair that waits for nothing goes on: its
// receives wait as if the way had been a wire.
func (d *Device) peerGone(device uint64) {
	d.drive.Receiver.Lock()
	for batch, empty := 0, 0; batch < goneBatches && empty < goneLooks; batch++ {
		n, err := d.receive()
		if err != nil {
			break
		}
		if empty++; n > 0 {
			empty = 0
		}
	}
	d.drive.Receiver.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return
	}
	connected := map[wire.QPN]bool{}
	d.gsi.cm.PeerGone(cm.Time(d.now()), func(n wire.QPN) bool {
		q := d.qps[n]
		connected[n] = q != nil && q.near == device
		return connected[n]
	})
	d.failWaiting(device, func(q *QP) bool { return connected[q.num] })
	d.final.drop(func(p finalAck) bool { return p.near == device })
	time.AfterFunc(goneGrace, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.failWaiting(device, func(*QP) bool { return true })
	})
}

// failWaiting fails the requests of chosen queue pairs that wait for a near
// device that has gone. Preconditions: d.mu is held.
func (d *Device) failWaiting(device uint64, chosen func(*QP) bool) {
	if d.closing {
		return
	}
	for _, q := range d.qps {
		if q == nil || q.near != device || !chosen(q) {
			continue
		}
		if rc, ok := q.engine.(*engine.QP); ok {
			rc.PeerGone()
			d.schedule(q)
		}
	}
	d.serveChanged(doorbellBatches)
}
