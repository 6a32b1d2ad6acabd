package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// exchange sends a request and returns the answers.
func (m *Manager) exchange(ctx context.Context, r Request) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	answers, err := m.k.RDMA(ctx, r)
	switch {
	case err == nil:
		return answers, nil
	case errors.Is(err, syscall.EPROTONOSUPPORT), errors.Is(err, syscall.ESOCKTNOSUPPORT):
		return nil, &NoRDMAError{Err: err}
	}
	return nil, err
}

// one sends a request that has exactly one answer.
func (m *Manager) one(ctx context.Context, r Request) ([]byte, error) {
	answers, err := m.exchange(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(answers) == 0 {
		return nil, &MessageError{Reason: fmt.Sprintf("no answer to %s", r)}
	}
	return answers[0], nil
}

// Devices lists the RDMA devices.
func (m *Manager) Devices(ctx context.Context) ([]Device, error) {
	answers, err := m.exchange(ctx, reqDevices())
	if err != nil {
		return nil, opError("list RDMA devices", err)
	}
	list := make([]Device, 0, len(answers))
	for _, b := range answers {
		d, err := parseDevice(b)
		if err != nil {
			return nil, opError("list RDMA devices", err)
		}
		list = append(list, d)
	}
	return list, nil
}

// Device finds a device by name: NoDeviceError when there is none.
func (m *Manager) Device(ctx context.Context, name string) (Device, error) {
	list, err := m.Devices(ctx)
	if err != nil {
		return Device{}, err
	}
	var names []string
	for _, d := range list {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return Device{}, &NoDeviceError{Device: name, Known: names}
}

// Refresh asks for a device again, with what only a query of one gives.
func (m *Manager) Refresh(ctx context.Context, d Device) (Device, error) {
	b, err := m.one(ctx, reqDevice(d.Index))
	if err != nil {
		return Device{}, opError("query "+d.Name, err)
	}
	return parseDevice(b)
}

// Ports lists a device's ports.
func (m *Manager) Ports(ctx context.Context, d Device) ([]Port, error) {
	list := make([]Port, 0, d.Ports)
	for n := uint32(1); n <= d.Ports && n <= maxPorts; n++ {
		p, err := m.Port(ctx, d, n)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// maxPorts bounds the loop: IBA counts ports in 8 bits.
const maxPorts = 255

// Port asks for one port, from 1.
func (m *Manager) Port(ctx context.Context, d Device, port uint32) (Port, error) {
	b, err := m.one(ctx, reqPort(d.Index, port))
	if err != nil {
		return Port{}, opError(fmt.Sprintf("query port %s/%d", d.Name, port), err)
	}
	return parsePort(b)
}

// Counters reads the hardware counters of a port.
func (m *Manager) Counters(ctx context.Context, d Device, port uint32) ([]Counter, error) {
	b, err := m.one(ctx, reqCounters(d.Index, port))
	if err != nil {
		return nil, opError(fmt.Sprintf("read counters of %s/%d", d.Name, port), err)
	}
	return parseCounters(b)
}

// Summary counts a device's objects by kind.
func (m *Manager) Summary(ctx context.Context, d Device) ([]Counter, error) {
	b, err := m.one(ctx, reqSummary(d.Index))
	if err != nil {
		return nil, opError("count objects of "+d.Name, err)
	}
	return parseSummary(b)
}

// objects dumps a device's objects of one kind and completes their owners.
func objects[T any](ctx context.Context, m *Manager, d Device, c Command, table, entry attrType, parse func([]byte) (T, error), owner func(*T) *Owner) ([]T, error) {
	what := fmt.Sprintf("list objects of %s (%s)", d.Name, c)
	answers, err := m.exchange(ctx, reqObjects(c, d.Index))
	if err != nil {
		return nil, opError(what, err)
	}
	var all []T
	for _, b := range answers {
		list, err := parseObjects(b, table, entry, parse)
		if err != nil {
			return nil, opError(what, err)
		}
		all = append(all, list...)
	}
	for i := range all {
		m.complete(owner(&all[i]))
	}
	return all, nil
}

// complete adds the command of a process, which the kernel leaves to /proc.
func (m *Manager) complete(o *Owner) {
	if o.Kernel || m.k.Root == nil {
		return
	}
	if comm, err := fs.ReadFile(m.k.Root, fmt.Sprintf("proc/%d/comm", o.PID)); err == nil {
		o.Comm = strings.TrimSuffix(string(comm), "\n")
	}
}

// QPs lists a device's queue pairs.
func (m *Manager) QPs(ctx context.Context, d Device) ([]QP, error) {
	return objects(ctx, m, d, CmdResQPGet, attrResQP, attrResQPEntry, parseQP, func(o *QP) *Owner { return &o.Owner })
}

// CQs lists a device's completion queues.
func (m *Manager) CQs(ctx context.Context, d Device) ([]CQ, error) {
	return objects(ctx, m, d, CmdResCQGet, attrResCQ, attrResCQEntry, parseCQ, func(o *CQ) *Owner { return &o.Owner })
}

// MRs lists a device's memory regions.
func (m *Manager) MRs(ctx context.Context, d Device) ([]MR, error) {
	return objects(ctx, m, d, CmdResMRGet, attrResMR, attrResMREntry, parseMR, func(o *MR) *Owner { return &o.Owner })
}

// PDs lists a device's protection domains.
func (m *Manager) PDs(ctx context.Context, d Device) ([]PD, error) {
	return objects(ctx, m, d, CmdResPDGet, attrResPD, attrResPDEntry, parsePD, func(o *PD) *Owner { return &o.Owner })
}

// CMIDs lists a device's identifiers of the connection manager.
func (m *Manager) CMIDs(ctx context.Context, d Device) ([]CMID, error) {
	return objects(ctx, m, d, CmdResCMIDGet, attrResCMID, attrResCMIDEntry, parseCMID, func(o *CMID) *Owner { return &o.Owner })
}

// Contexts lists the opened contexts of a device.
func (m *Manager) Contexts(ctx context.Context, d Device) ([]Context, error) {
	return objects(ctx, m, d, CmdResCtxGet, attrResCtx, attrResCtxEntry, parseContext, func(o *Context) *Owner { return &o.Owner })
}

// SRQs lists a device's shared receive queues.
func (m *Manager) SRQs(ctx context.Context, d Device) ([]SRQ, error) {
	return objects(ctx, m, d, CmdResSRQGet, attrResSRQ, attrResSRQEntry, parseSRQ, func(o *SRQ) *Owner { return &o.Owner })
}

// System reads the RDMA subsystem's settings.
func (m *Manager) System(ctx context.Context) (System, error) {
	b, err := m.one(ctx, reqSystem())
	if err != nil {
		return System{}, opError("read the RDMA system's settings", err)
	}
	return parseSystem(b)
}

// CharDev finds the file of a device below /dev/infiniband; client is "uverbs"
// (others: "umad", "issm", "rdma_cm").
func (m *Manager) CharDev(ctx context.Context, d Device, client string) (CharDev, error) {
	b, err := m.one(ctx, reqCharDev(d.Index, client))
	if err != nil {
		return CharDev{}, opError(fmt.Sprintf("find the %s device of %s", client, d.Name), err)
	}
	return parseCharDev(b)
}

// IsRXE says whether a device is rxe's.
func (m *Manager) IsRXE(ctx context.Context, d Device) bool {
	if c, err := m.CharDev(ctx, d, "uverbs"); err == nil && c.known {
		return c.Driver == driverRXE
	}
	// Only rxe has this file: the name of its network device. It is there
	// also while ib_uverbs is not loaded.
	if m.k.Root == nil {
		return false
	}
	_, err := fs.Stat(m.k.Root, "sys/class/infiniband/"+d.Name+"/parent")
	return err == nil
}
