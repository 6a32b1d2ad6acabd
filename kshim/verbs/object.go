package verbs

import "sync"

// object is the common part of all but queue pairs: the kernel's handle, which
// the kernel gives to the next object once it is freed.
type object struct {
	ctx    *Context
	handle uint32

	// use is shared by commands that name the handle and exclusive in the one
	// that frees it.
	use  sync.RWMutex
	gone bool // guarded by use
}

// command runs a control call that names the handle. EBADF when it was freed.
func (o *object) command(op, name string, f func() error) error {
	return o.ctx.call(op, name, func() error {
		o.use.RLock()
		defer o.use.RUnlock()
		if o.gone {
			return errDestroyed
		}
		return f()
	})
}

// free gives the handle back by the kernel's command and, if that succeeded,
// lets go of the client's part. EBADF the second time.
func (o *object) free(command func() error, drop func()) error {
	o.use.Lock()
	defer o.use.Unlock()
	if o.gone {
		return errDestroyed
	}
	if err := command(); err != nil {
		return err
	}
	o.gone = true
	drop()
	return nil
}

// enter notes an object in one of the context's tables, and leave strikes it
// out.
func enter[T comparable](c *Context, table map[T]struct{}, o T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	table[o] = struct{}{}
}

func leave[K comparable, V any](c *Context, table map[K]V, key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(table, key)
}
