package verbs

import (
	"context"

	"github.com/rdmashim/rdmashim/kshim"
)

// attend lets a kernel that runs in this process work in the goroutine that waits,
// and reports whether it did so until there may be something new.
func (cq *CQ) attend(ctx context.Context, seen uint32) bool {
	a, ok := cq.ctx.cmd.file.(kshim.Attender)
	return ok && cq.suspects.Load() == 0 && a.Attend(ctx, &cq.wakes, seen)
}

// rouse lets who attends look again.
func (c *Context) rouse() {
	if a, ok := c.cmd.file.(kshim.Attender); ok {
		a.Rouse()
	}
}
