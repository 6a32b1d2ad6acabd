package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/nldev"
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
	return refused(op, err)
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
	return refused(op, err)
}

// Move moves a device to another network namespace, of which netns is an open
// file (/run/netns/NAME, /proc/PID/ns/net). Its users lose it. EOPNOTSUPP from
// devices that cannot be moved, as rxe's, which go with their network device,
// and from all in the shared mode (SetNetNS).
func (m *Manager) Move(ctx context.Context, name string, netns *os.File) error {
	op := fmt.Sprintf("move %s to the network namespace %s", name, netns.Name())
	d, err := m.Device(ctx, name)
	if err != nil {
		return err
	}
	_, err = m.exchange(ctx, about(d, "SET", "NET_NS_FD", uint32(netns.Fd())))
	if errors.Is(err, syscall.EOPNOTSUPP) {
		err = fmt.Errorf("the driver cannot move its devices, or the network namespace mode is shared: %w", err)
	}
	return refused(op, err)
}

// SetPrivilegedQKey says whether programs without CAP_NET_RAW may use Q_Keys
// with the highest bit set. EINVAL from Linux before 6.7.
func (m *Manager) SetPrivilegedQKey(ctx context.Context, on bool) error {
	const op = "set the privileged Q_Key mode"
	var mode uint8
	if on {
		mode = 1
	}
	_, err := m.exchange(ctx, Request{Command: "SYS_SET", Attrs: nldev.Encode("PRIVILEGED_QKEY_MODE", mode)})
	if errors.Is(err, syscall.EINVAL) {
		err = fmt.Errorf("not before Linux 6.7: %w", err)
	}
	return refused(op, err)
}
