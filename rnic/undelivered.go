package rnic

import (
	"net/netip"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// maxReturned bounds the reports that wait for the worker. A report beyond is
// lost: its message is repeated.
const maxReturned = 64

// returnedList holds the reports of datagrams of queue pair 1 that were not
// delivered. The link's goroutines write it while the device may be locked, so
// that the worker hands them on.
type returnedList struct {
	mu   sync.Mutex
	n    int                           // guarded by mu: reports in list
	list [maxReturned]returnedDatagram // guarded by mu
}

type returnedDatagram struct {
	peer netip.AddrPort
	why  syscall.Errno
	mad  [cm.QuoteLen]byte
}

// undelivered takes the reports of packets that came back. Queue pairs find out
// about theirs by the silence: ICMP, which any host can send, ends no
// connection.
func (d *Device) undelivered(u link.Undelivered) {
	const headers = wire.BTHLen + wire.DETHLen
	var h wire.BTH
	if len(u.Head) < headers+cm.QuoteLen || h.Parse(u.Head) != nil || h.Opcode != wire.UDSendOnly || h.DestQPN != wire.GSIQPN {
		return
	}
	r := &d.bounced
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n < maxReturned {
		r.list[r.n] = returnedDatagram{peer: u.Peer, why: u.Why, mad: [cm.QuoteLen]byte(u.Head[headers:])}
		r.n++
	}
	d.wakeWorker()
}

// serveReturned gives the reports to the communication manager. Preconditions:
// the device's mu is held.
func (d *Device) serveReturned() {
	r := &d.bounced
	r.mu.Lock()
	defer r.mu.Unlock()
	now := cm.Time(d.now())
	for i := range r.list[:r.n] {
		x := &r.list[i]
		d.gsi.cm.Undelivered(now, x.peer, x.mad[:], x.why)
	}
	r.n = 0
}
