package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/netlinkmgr/nldev"
)

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
	_, err = m.exchange(ctx, about(d, "SET", "DEV_NAME", to))
	if errors.Is(err, syscall.EEXIST) {
		return &OpError{op, fmt.Errorf("another device has that name: %w", err)}
	}
	return opError(op, permission(op, "CAP_NET_ADMIN", err))
}

// SetNetNS sets the network namespace mode; the kernel gives EBUSY while other
// namespaces than the initial one exist.
func (m *Manager) SetNetNS(ctx context.Context, shared bool) error {
	const op = "set the network namespace mode"
	mode := NetNSExclusive
	if shared {
		mode = NetNSShared
	}
	_, err := m.exchange(ctx, Request{Command: "SYS_SET", Attrs: nldev.Encode("NETNS_MODE", uint8(mode))})
	if errors.Is(err, syscall.EBUSY) {
		err = fmt.Errorf("there are other network namespaces than the initial one: end them, or set the mode before they are made (module parameter netns_mode of ib_core): %w", err)
	}
	return opError(op, permission(op, "CAP_NET_ADMIN", err))
}
