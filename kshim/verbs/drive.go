package verbs

import (
	"context"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/kshim"
)

// progress lets a kernel that runs in this process work. It reports whether
// there may be something new.
func (c *Context) progress() bool {
	d, ok := c.cmd.file.(kshim.Driven)
	return ok && d.Progress()
}

// lead lets a kernel that runs in this process work in the goroutine that
// waits, and reports whether it did so until there may be something new.
func (c *Context) lead(ctx context.Context, cqs []*CQ, news uint32, wakes *atomic.Uint32, seen uint32) bool {
	d, ok := c.cmd.file.(kshim.Driven)
	for _, cq := range cqs {
		ok = ok && cq.suspects.Load() == 0
	}
	return ok && d.Lead(ctx, news, wakes, seen)
}

// news is the count for lead, read by a caller before it looks at the queue.
func (c *Context) news() uint32 {
	if d, ok := c.cmd.file.(kshim.Driven); ok {
		return d.News()
	}
	return 0
}

// rouse makes the goroutine that leads look again.
func (c *Context) rouse() {
	if d, ok := c.cmd.file.(kshim.Driven); ok {
		d.Rouse()
	}
}
