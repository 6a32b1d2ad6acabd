package verbs

import (
	"errors"
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Resize gives the queue room for cqe completions at least; those that wait in
// it stay, in their order (IBA 11.2.8.4). EINVAL, and nothing has changed, if
// cqe is outside the device's limits or less than wait. Poll and Wait may go on
// meanwhile. It does not mend a queue that has overrun.
func (cq *CQ) Resize(cqe int) error {
	return cq.command("resize CQ", fmt.Sprintf("to %d entries", cqe), func() error {
		if cqe < 1 || cqe > maxQueued {
			return errArgument
		}
		cq.mu.Lock()
		defer cq.mu.Unlock()
		// No caller polls until the new ring is there: the kernel takes the old
		// one's entries away.
		q, err := cq.ctx.cmd.resizeCQ(&abi.ResizeCQ{CQHandle: cq.handle, CQE: uint32(cqe)})
		var lost *ringLost
		switch {
		case q != nil:
			cq.q.close()
			cq.q = q
			cq.cqe.Store(int64(cqe))
		case errors.As(err, &lost):
			cq.q.close()
			cq.q = nil
			cq.err = err
		}
		return err
	})
}

// ringLost is the error of a queue whose ring the kernel has replaced and that
// could not be mapped: completions cannot be taken out any more.
type ringLost struct{ err error }

func (e *ringLost) Error() string { return "the resized queue cannot be mapped: " + e.err.Error() }
func (e *ringLost) Unwrap() error { return e.err }
