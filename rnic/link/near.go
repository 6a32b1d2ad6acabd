package link

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Near is a Link that reaches devices of the same host by a way of its own.
type Near interface {
	Link
	// Meet looks whether the device at peer is on this host, and returns a
	// number that stands for that device until it has gone; 0 if it is not, or
	// cannot be reached by the near way. It may block for some milliseconds.
	// Packets to a device that was met take the near way, but for those marked
	// Far.
	Meet(peer netip.AddrPort) (device uint64)
	// Lease returns a lease by which packets to devices that were met may lend
	// mem, registered memory; nil for memory that may not be lent.
	Lease(mem []byte) *wire.Lease
	// Recall ends a lease. When it returns no peer reads the lent memory any
	// more: packets that no peer has read are lost, and a peer that reads is
	// waited for, 100 ms at most; then its device counts as gone.
	Recall(*wire.Lease)
	// InUse reports whether the packets of the last Recv still take room of a
	// near device, until the next Recv. A receiver that holds them must not
	// sleep: a peer without room sends nothing, and so does not wake it.
	InUse() bool
	// StayAwake says that the caller is about to receive, until MaySleep: what
	// near devices send meanwhile wakes no goroutine that waits. MaySleep wakes
	// one for what was not received.
	StayAwake()
	MaySleep()
	// Reaches reports whether packets to a device that was met still take the
	// near way.
	Reaches(device uint64) bool
	// Progress returns how many bytes were put into the near way to a device
	// that was met, and how many of them that device has taken; 0 where there
	// is no such way.
	Progress(device uint64) (sent, taken uint64)
	// Hears reports whether a device that was met sends by the near way.
	Hears(device uint64) bool
	// SetGone sets the function that is called at the end of a device that was
	// met. The link's Recv still gives what the device has sent until the
	// function returns.
	SetGone(func(device uint64))
}

// Watcher is a Link whose Wait and Sleep can end for another descriptor, too.
type Watcher interface {
	Link
	// Watch lets Wait and Sleep return while fd can be read. The caller closes
	// fd after the link.
	Watch(fd int) error
}
