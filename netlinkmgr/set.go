package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// SetPrivilegedQKey says whether Q_Keys with the highest bit set are for
// privileged programs only (Linux 6.7).
func (m *Manager) SetPrivilegedQKey(ctx context.Context, on bool) error {
	const op = "set privileged-qkey"
	_, err := m.exchange(ctx, Request{Command: CmdSysSet, Attrs: appendU8(nil, attrSysPrivilegedQKey, oneIf(on))})
	if errors.Is(err, syscall.EINVAL) {
		return &OpError{op, fmt.Errorf("this kernel has no such setting (Linux 6.7 has): %w", err)}
	}
	return opError(op, permission(op, "CAP_NET_ADMIN", err))
}

// SetAdaptiveModeration switches the moderation of completion events (DIM).
func (m *Manager) SetAdaptiveModeration(ctx context.Context, name string, on bool) error {
	op := "set adaptive-moderation of " + name
	d, err := m.Device(ctx, name)
	if err != nil {
		return err
	}
	_, err = m.exchange(ctx, Request{Command: CmdSet, Attrs: appendU8(appendU32(nil, attrDevIndex, d.Index), attrDevDIM, oneIf(on))})
	if errors.Is(err, syscall.EOPNOTSUPP) {
		return &OpError{op, fmt.Errorf("the device has none: %w", err)}
	}
	return opError(op, permission(op, "CAP_NET_ADMIN", err))
}

func oneIf(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// MoveToNetNS moves a device to a network namespace, by its name (ip-netns(8))
// or by a process in it.
func (m *Manager) MoveToNetNS(ctx context.Context, name, netns string) error {
	op := fmt.Sprintf("move %s to the network namespace %s", name, netns)
	d, err := m.Device(ctx, name)
	if err != nil {
		return err
	}
	if m.k.OpenNetNS == nil {
		return &OpError{op, syscall.ENOTSUP}
	}
	fd, closeNS, err := m.k.OpenNetNS(netns)
	if errors.Is(err, fs.ErrNotExist) {
		return &NoNetNSError{NetNS: netns, Known: m.NetNamespaces()}
	}
	if err != nil {
		return opError(op, permission(op, "CAP_SYS_PTRACE", err))
	}
	defer closeNS()
	r := Request{Command: CmdSet, Attrs: appendU32(appendU32(nil, attrDevIndex, d.Index), attrNetNSFD, fd)}
	_, err = m.exchange(ctx, r)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		return &OpError{op, m.whyNotMoved(ctx, d, err)}
	}
	return opError(op, permission(op, "CAP_NET_ADMIN", err))
}

// whyNotMoved: devices move in the exclusive mode only, and only those that can
// be taken from who has them open (core/device.c: ib_device_set_netns_put).
func (m *Manager) whyNotMoved(ctx context.Context, d Device, err error) error {
	if sys, sysErr := m.System(ctx); sysErr == nil && sys.NetNS == 1 {
		return fmt.Errorf("the namespaces share all devices: 'rdmashim system set netns exclusive' first: %w", err)
	}
	if m.IsRXE(ctx, d) {
		return fmt.Errorf("this kernel cannot move rxe links: delete it and add it to a network device there: %w", err)
	}
	return fmt.Errorf("its driver cannot: %w", err)
}
