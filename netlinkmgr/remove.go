package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Remove undoes what Ensure changed, the last change first: the link, the
// network device's state and MTU, the modules. Parts that were there before
// stay, and so does a module that has another user by now. Removing twice is no
// error.
func (m *Manager) Remove(ctx context.Context, r *Result) error { return m.undo(ctx, r.Made) }

func (m *Manager) undo(ctx context.Context, c Changes) error {
	var errs []error
	if c.Link != "" {
		errs = append(errs, m.undoLink(ctx, c))
	}
	if c.NetDevUp != "" {
		if err := m.k.SetNetDev(ctx, c.NetDevUp, false); !errors.Is(err, syscall.ENODEV) {
			errs = append(errs, refused("bring "+c.NetDevUp+" down", err))
		}
	}
	if c.MTUOf != "" {
		if err := m.k.SetMTU(ctx, c.MTUOf, c.MTU); !errors.Is(err, syscall.ENODEV) {
			errs = append(errs, refused(fmt.Sprintf("set the MTU of %s back to %d", c.MTUOf, c.MTU), err))
		}
	}
	for i := len(c.Modules) - 1; i >= 0; i-- {
		errs = append(errs, m.undoModule(c.Modules[i].Name))
	}
	return errors.Join(errs...)
}

// undoLink deletes the link if it is still the one that was made: a name may
// have been taken again, an index is not reused before it wraps.
func (m *Manager) undoLink(ctx context.Context, c Changes) error {
	d, err := m.Device(ctx, c.Link)
	var gone *NoDeviceError
	switch {
	case errors.As(err, &gone), isNoRDMA(err):
		return nil
	case err != nil:
		return err
	case c.LinkIndex >= 0 && int64(d.Index) != c.LinkIndex:
		return nil
	}
	return m.deleteLink(ctx, d)
}

func (m *Manager) undoModule(name string) error {
	err := m.k.RemoveModule(name)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EAGAIN):
		return nil // gone already, or in use
	}
	op := "unload module " + name
	return opError(op, permission(op, "CAP_SYS_MODULE", err))
}
