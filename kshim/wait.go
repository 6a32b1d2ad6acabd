package kshim

import "context"

// Waiter is a File whose events are fetched by a command and not by Read:
// /dev/infiniband/rdma_cm. Such a file is opened non-blocking: the command that
// fetches an event is EAGAIN when there is none.
type Waiter interface {
	// WaitReadable blocks until the file is readable as poll(2) means it, which
	// is until a fetch may succeed. It may return although there is nothing. It
	// returns ctx.Err() when ctx ends, and an error that Is net.ErrClosed when
	// the file is closed meanwhile.
	WaitReadable(ctx context.Context) error
}
