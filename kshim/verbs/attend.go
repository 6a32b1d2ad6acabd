package verbs

import (
	"context"

	"github.com/rdmashim/rdmashim/kshim"
)

// attend lets a kernel that runs in this process work in the goroutine that
// waits, and reports whether it did so until there may be something new.
func (cq *CQ) attend(ctx context.Context, news, seen uint32) bool {
	a, ok := cq.ctx.cmd.file.(kshim.Attender)
	return ok && cq.suspects.Load() == 0 && a.Attend(ctx, news, &cq.wakes, seen)
}

// news is what attend is to be given by who has not looked at the queue yet.
func (c *Context) news() uint32 {
	if a, ok := c.cmd.file.(kshim.Attender); ok {
		return a.News()
	}
	return 0
}

// rouse lets who attends look again.
func (c *Context) rouse() {
	if a, ok := c.cmd.file.(kshim.Attender); ok {
		a.Rouse()
	}
}
