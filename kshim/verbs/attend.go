package verbs

import (
	"context"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/kshim"
)

// attend lets a kernel that runs in this process work in the goroutine that
// waits, and reports whether it did so until there may be something new.
func (c *Context) attend(ctx context.Context, cqs []*CQ, news uint32, wakes *atomic.Uint32, seen uint32) bool {
	a, ok := c.cmd.file.(kshim.Attender)
	for _, cq := range cqs {
		ok = ok && cq.suspects.Load() == 0
	}
	return ok && a.Attend(ctx, news, wakes, seen)
}

// news is the count for attend, read by a caller before it looks at the queue.
func (c *Context) news() uint32 {
	if a, ok := c.cmd.file.(kshim.Attender); ok {
		return a.News()
	}
	return 0
}

// rouse makes the attendant look again.
func (c *Context) rouse() {
	if a, ok := c.cmd.file.(kshim.Attender); ok {
		a.Rouse()
	}
}
