package driver

import "github.com/rdmashim/rdmashim/kshim/abi"

// SRQDevice is a Device with shared receive queues: receives that any queue
// pair takes which was made with the queue.
type SRQDevice interface {
	// CreateSRQ makes a queue of at least init.MaxWR receives, raises MaxWR
	// and MaxSGE to the least that it has, and answers its ring in u.
	CreateSRQ(init *SRQInit, u *Udata, ev SRQEvents) (SRQ, error)
}

// SRQInit is struct ib_srq_init_attr of a basic queue.
type SRQInit struct {
	PD                   PD
	MaxWR, MaxSGE, Limit uint32
}

type SRQ interface {
	// Modify changes what the mask of a names. A new ring, of at least
	// a.MaxWR receives to which those that wait are moved, is answered where
	// u.In says.
	Modify(a *abi.ModifySRQ, u *Udata) error
	Query() (abi.QuerySRQResp, error)
	// Destroy stops the queue, which no queue pair uses any more. When it
	// returns the device no longer touches the ring.
	Destroy() error
}

// SRQEvents is how a driver raises events of shared receive queues, as
// CQEvents.
type SRQEvents interface {
	// Event raises SRQ_LIMIT_REACHED or SRQ_ERR.
	Event(abi.EventType)
}
