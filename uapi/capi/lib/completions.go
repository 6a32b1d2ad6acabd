//go:build linux && cgo

package main

// #include "rdma.h"
import "C"

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
)

// batch is how many completions are taken at a time.
const batch = 32

// completions is the room for a batch, as Go and as C have them.
type completions struct {
	list  [batch]uapi.WC
	given [batch]C.struct_rdma_wc
}

var rooms = sync.Pool{New: func() any { return new(completions) }}

// rdmashimWaitCQ takes completions to an array of C. After an error the first
// one is no success, for a program that does not look at the result.
//
//export rdmashimWaitCQ
func rdmashimWaitCQ(qp C.int, wc *C.struct_rdma_wc, room, timeout C.int, text *C.char) C.int {
	n := call(text, func(c *uapi.Device) (int, error) {
		b := rooms.Get().(*completions)
		defer rooms.Put(b)
		return b.take(c, uapi.QP(qp), wc, max(int(room), 0), timeout)
	})
	if n < 0 && room > 0 {
		_ = store(wc, 0, C.struct_rdma_wc{status: C.RDMA_WC_GENERAL_ERR})
	}
	return n
}

// take waits for the first batch only. An error of a later one comes again.
func (b *completions) take(c *uapi.Device, qp uapi.QP, wc *C.struct_rdma_wc, room int, timeout C.int) (total int, err error) {
	for {
		n, err := poll(c, qp, b.list[:min(room-total, batch)], timeout)
		if err != nil && total == 0 {
			return 0, err
		}
		n = max(n, 0)
		for i := range n {
			from := &b.list[i]
			b.given[i] = C.struct_rdma_wc{
				wr_id: C.int(identity(from.WRID)), status: C.int(from.Status), opcode: C.int(from.Opcode), byte_len: C.uint64_t(from.ByteLen),
			}
		}
		if err := store(wc, total, b.given[:n]...); err != nil {
			return 0, err
		}
		if total += n; n < batch || total == room {
			return total, nil
		}
		timeout = 0
	}
}

// poll is WaitCQ with a time in milliseconds, after which it finds nothing, and
// PollCQ for 0.
func poll(c *uapi.Device, qp uapi.QP, list []uapi.WC, timeout C.int) (int, error) {
	ctx := context.Background()
	switch {
	case timeout == 0:
		return c.PollCQ(qp, list)
	case timeout > 0:
		bounded, cancel := context.WithTimeout(ctx, time.Duration(timeout)*time.Millisecond)
		defer cancel()
		ctx = bounded
	}
	n, err := c.WaitCQ(ctx, qp, list)
	if errors.Is(err, context.DeadlineExceeded) {
		return 0, nil
	}
	return n, err
}
