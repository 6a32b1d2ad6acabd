package netlinkmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
)

// ApplySetup makes the system's rxe links as a setup says and returns what it
// changed; applied again, it changes nothing. All is checked before the first
// change (PlanSetup); if one fails, those before it are undone, the last one
// first, and a HalfDoneError says what could not be.
func (m *Manager) ApplySetup(ctx context.Context, s Setup, o SetupOptions) (*Plan, error) {
	p, err := m.PlanSetup(ctx, s, o)
	if err != nil {
		return nil, err
	}
	for i, c := range p.Changes {
		if err := ctx.Err(); err != nil {
			return nil, undoChanges(ctx, p.Changes[:i], context.Cause(ctx))
		}
		if o.Log != nil {
			o.Log(c)
		}
		if err := c.do(ctx); err != nil {
			return nil, undoChanges(ctx, p.Changes[:i], err)
		}
	}
	return p, nil
}

// undoChanges undoes what was done before a failure.
func undoChanges(ctx context.Context, done []Change, cause error) error {
	ctx = context.WithoutCancel(ctx)
	var stay []string
	var errs []error
	for _, c := range slices.Backward(done) {
		if err := c.undo(ctx); err != nil {
			stay, errs = append(stay, c.Text), append(errs, err)
		}
	}
	if len(errs) > 0 {
		slices.Reverse(stay)
		return &HalfDoneError{Err: cause, Done: stay, Undo: errors.Join(errs...)}
	}
	if len(done) > 0 {
		return fmt.Errorf("%w (what was done before is undone)", cause)
	}
	return cause
}

// Rename gives a device another name; its users keep it.
func (m *Manager) Rename(ctx context.Context, name, to string) error {
	op := fmt.Sprintf("rename %s to %s", name, to)
	if to == "" || checkName(to) != nil {
		return &OpError{op, fmt.Errorf("%q cannot be the name of a device: %w", to, syscall.EINVAL)}
	}
	d, err := m.Device(ctx, name)
	if err != nil {
		return err
	}
	_, err = m.exchange(ctx, reqRename(d.Index, to))
	if errors.Is(err, syscall.EEXIST) {
		return &OpError{op, fmt.Errorf("another device has that name: %w", err)}
	}
	return opError(op, permission(op, "CAP_NET_ADMIN", err))
}

// SetMTU sets the MTU of a network device in bytes. Its link's path MTU
// follows: the largest of 256, 512 … 4096 that leaves room for the headers.
func (m *Manager) SetMTU(ctx context.Context, netdev string, mtu int) error {
	op := fmt.Sprintf("set the MTU of %s to %d", netdev, mtu)
	err := m.k.SetMTU(ctx, netdev, mtu)
	switch {
	case errors.Is(err, syscall.ENODEV):
		return &NetDevGoneError{NetDev: netdev}
	case errors.Is(err, syscall.EINVAL):
		return &OpError{op, fmt.Errorf("the device does not take it; 'ip -d link show %s' shows minmtu and maxmtu: %w", netdev, err)}
	}
	return opError(op, permission(op, "CAP_NET_ADMIN", err))
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
