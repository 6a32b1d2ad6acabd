package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Links lists the ports of all devices.
func (m *Manager) Links(ctx context.Context) ([]Port, error) {
	var list []Port
	err := m.eachDevice(ctx, func(_ Device, ports []Port) { list = append(list, ports...) })
	return list, err
}

// ports lists the ports of all devices and which are rxe's; none when the
// kernel's RDMA core is not loaded.
func (m *Manager) ports(ctx context.Context) ([]portOf, error) {
	var list []portOf
	err := m.eachDevice(ctx, func(d Device, ports []Port) {
		rxe := m.IsRXE(ctx, d)
		for _, p := range ports {
			list = append(list, portOf{p, rxe})
		}
	})
	if isNoRDMA(err) {
		return nil, nil
	}
	return list, err
}

// eachDevice calls f with each device and its ports. Devices that go away
// meanwhile are left out.
func (m *Manager) eachDevice(ctx context.Context, f func(Device, []Port)) error {
	devices, err := m.Devices(ctx)
	if err != nil {
		return err
	}
	for _, d := range devices {
		ports, err := m.Ports(ctx, d)
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENODEV) {
			continue
		}
		if err != nil {
			return err
		}
		f(d, ports)
	}
	return nil
}

// AddLink creates the link name of a kind ("rxe", "siw") on a network device.
// It loads nothing and waits for nothing: Ensure does.
func (m *Manager) AddLink(ctx context.Context, name, kind, netdev string) error {
	if name == "" || checkName(name) != nil {
		return &OpError{fmt.Sprintf("use %q as the name of a link", name), syscall.EINVAL}
	}
	_, err := m.exchange(ctx, newLink(name, kind, netdev))
	if err == nil {
		return nil
	}
	op := fmt.Sprintf("create link %s (%s) on %s", name, kind, netdev)
	switch {
	case isNoRDMA(err):
		return err
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return m.whyNotPermitted(ctx, op, netdev, err)
	case errors.Is(err, syscall.EEXIST), errors.Is(err, syscall.ENFILE):
		return m.whyExists(ctx, name, kind, netdev)
	case errors.Is(err, syscall.ENODEV):
		return &NetDevGoneError{NetDev: netdev}
	case errors.Is(err, syscall.EINVAL):
		return m.whyInvalid(op, kind, netdev, err)
	case errors.Is(err, syscall.ENOENT) && kind == "rxe" && !m.hasAlgorithm(rxeChecksum):
		return m.notLoaded(op, rxeChecksumGeneric, netdev, err)
	}
	return &OpError{op, err}
}

// notLoaded: a module that a link needs is not loaded, or not to be had.
func (m *Manager) notLoaded(op, module, netdev string, err error) error {
	if _, none := m.moduleFiles(module); none != nil {
		return none
	}
	return &OpError{op, fmt.Errorf("the module %s is not loaded: 'rdmashim link up %s' loads it: %w", module, netdev, err)}
}

// whyNotPermitted: rxe answers EPERM also for a VLAN.
func (m *Manager) whyNotPermitted(ctx context.Context, op, netdev string, err error) error {
	if devs, listErr := m.NetDevs(ctx); listErr == nil {
		if d, findErr := findNetDev(devs, netdev); findErr == nil && unfit(d) != "" {
			return &NetDevUnsuitableError{NetDev: netdev, Why: unfit(d)}
		}
	}
	return permission(op, "CAP_NET_ADMIN", err)
}

// whyExists: the kernel answers EEXIST when the network device has a link
// (rxe.c:rxe_newlink), and ENFILE when the name is taken
// (core/device.c:assign_name).
func (m *Manager) whyExists(ctx context.Context, name, kind, netdev string) error {
	ports, err := m.ports(ctx)
	if err != nil {
		return err
	}
	for _, p := range ports {
		if p.Device == name && p.NetDev != netdev {
			return &NameTakenError{Device: name, NetDev: p.NetDev, Want: netdev, RXE: p.rxe}
		}
	}
	if l := linkOn(ports, netdev); l != nil && kind == "rxe" {
		return &NetDevHasLinkError{NetDev: netdev, Device: l.Device, Want: name}
	}
	return &NetDevHasLinkError{NetDev: netdev, Want: name}
}

// whyInvalid: the kernel answers EINVAL for a kind whose module is not there.
func (m *Manager) whyInvalid(op, kind, netdev string, err error) error {
	if kind == "rxe" && !m.Loaded(rxeModule) {
		return m.notLoaded(op, rxeModule, netdev, err)
	}
	if kind != "rxe" {
		return &OpError{op, fmt.Errorf("this kernel knows no link type %q: %w", kind, err)}
	}
	return &OpError{op, err}
}

// DeleteLink removes a link that was added; hardware devices cannot be.
func (m *Manager) DeleteLink(ctx context.Context, name string) error {
	d, err := m.Device(ctx, name)
	if err != nil {
		return err
	}
	return m.deleteLink(ctx, d)
}

func (m *Manager) deleteLink(ctx context.Context, d Device) error {
	_, err := m.exchange(ctx, about(d, "DELLINK"))
	op := "delete link " + d.Name
	if errors.Is(err, syscall.EINVAL) {
		return &OpError{op, fmt.Errorf("it was not made by adding a link: %w", err)}
	}
	return refused(op, err)
}
