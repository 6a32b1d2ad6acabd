package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/nldev"
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
	if err == nil && len(answers) == 0 {
		err = &nldev.Error{Reason: "no answer to " + r.Command}
	}
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// object asks for one object; op is what errors name.
func (m *Manager) object(ctx context.Context, op string, r Request, v any) error {
	b, err := m.one(ctx, r)
	if err == nil {
		err = nldev.Decode(b, v)
	}
	return opError(op, err)
}

// Devices lists the RDMA devices.
func (m *Manager) Devices(ctx context.Context) ([]Device, error) {
	answers, err := m.exchange(ctx, Request{Command: "GET", Dump: true})
	list := make([]Device, len(answers))
	for i := range list {
		if err == nil {
			err = nldev.Decode(answers[i], &list[i])
		}
	}
	if err != nil {
		return nil, opError("list RDMA devices", err)
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
func (m *Manager) Port(ctx context.Context, d Device, port uint32) (p Port, err error) {
	err = m.object(ctx, fmt.Sprintf("query port %s/%d", d.Name, port), about(d, "PORT_GET", "PORT_INDEX", port), &p)
	return p, err
}

// Counters reads the hardware counters of a port.
func (m *Manager) Counters(ctx context.Context, d Device, port uint32) (list []Counter, err error) {
	b, err := m.one(ctx, about(d, "STAT_GET", "PORT_INDEX", port))
	if err == nil {
		list, err = nldev.DecodeTable[Counter](b, "STAT_HWCOUNTERS")
	}
	return list, opError(fmt.Sprintf("read counters of %s/%d", d.Name, port), err)
}

// Summary counts a device's objects by kind.
func (m *Manager) Summary(ctx context.Context, d Device) (list []Counter, err error) {
	type count struct {
		Name  string `nldev:"RES_SUMMARY_ENTRY_NAME,required"`
		Value uint64 `nldev:"RES_SUMMARY_ENTRY_CURR,required"`
	}
	var counts []count
	b, err := m.one(ctx, about(d, "RES_GET"))
	if err == nil {
		counts, err = nldev.DecodeTable[count](b, "RES_SUMMARY")
	}
	for _, c := range counts {
		list = append(list, Counter(c))
	}
	return list, opError("count objects of "+d.Name, err)
}

// objects dumps a device's objects of one kind, with their owners.
func objects[T any](ctx context.Context, m *Manager, d Device, table string, owner func(*T) *Owner) (all []T, err error) {
	r := about(d, table+"_GET")
	r.Dump = true
	answers, err := m.exchange(ctx, r)
	for _, b := range answers { // each holds some
		list, bad := nldev.DecodeTable[T](b, table)
		if err == nil {
			err = bad
		}
		all = append(all, list...)
	}
	if err != nil {
		return nil, opError(fmt.Sprintf("list objects of %s (%s)", d.Name, table), err)
	}
	for i := range all {
		m.complete(owner(&all[i]))
	}
	return all, nil
}

// complete adds the command of a process, which the kernel leaves to /proc.
func (m *Manager) complete(o *Owner) {
	if o.Kernel = o.PID == 0; o.Kernel || m.k.Root == nil {
		return
	}
	if comm, err := fs.ReadFile(m.k.Root, fmt.Sprintf("proc/%d/comm", o.PID)); err == nil {
		o.Comm = strings.TrimSuffix(string(comm), "\n")
	}
}

// QPs lists a device's queue pairs.
func (m *Manager) QPs(ctx context.Context, d Device) ([]QP, error) {
	return objects(ctx, m, d, "RES_QP", func(o *QP) *Owner { return &o.Owner })
}

// CQs lists a device's completion queues.
func (m *Manager) CQs(ctx context.Context, d Device) ([]CQ, error) {
	return objects(ctx, m, d, "RES_CQ", func(o *CQ) *Owner { return &o.Owner })
}

// MRs lists a device's memory regions.
func (m *Manager) MRs(ctx context.Context, d Device) ([]MR, error) {
	return objects(ctx, m, d, "RES_MR", func(o *MR) *Owner { return &o.Owner })
}

// PDs lists a device's protection domains.
func (m *Manager) PDs(ctx context.Context, d Device) ([]PD, error) {
	return objects(ctx, m, d, "RES_PD", func(o *PD) *Owner { return &o.Owner })
}

// CMIDs lists a device's identifiers of the connection manager.
func (m *Manager) CMIDs(ctx context.Context, d Device) ([]CMID, error) {
	return objects(ctx, m, d, "RES_CM_ID", func(o *CMID) *Owner { return &o.Owner })
}

// Contexts lists a device's opened contexts.
func (m *Manager) Contexts(ctx context.Context, d Device) ([]Context, error) {
	return objects(ctx, m, d, "RES_CTX", func(o *Context) *Owner { return &o.Owner })
}

// SRQs lists a device's shared receive queues.
func (m *Manager) SRQs(ctx context.Context, d Device) ([]SRQ, error) {
	return objects(ctx, m, d, "RES_SRQ", func(o *SRQ) *Owner { return &o.Owner })
}

// System reads the RDMA subsystem's settings.
func (m *Manager) System(ctx context.Context) (s System, err error) {
	err = m.object(ctx, "read the RDMA system's settings", Request{Command: "SYS_GET"}, &s)
	return s, err
}

// CharDev finds the file of a device below /dev/infiniband; client is "uverbs"
// (others: "umad", "issm", "rdma_cm").
func (m *Manager) CharDev(ctx context.Context, d Device, client string) (c CharDev, err error) {
	err = m.object(ctx, fmt.Sprintf("find the %s device of %s", client, d.Name), about(d, "GET_CHARDEV", "CHARDEV_TYPE", client), &c)
	return c, err
}

// IsRXE reports whether a device is rxe's.
func (m *Manager) IsRXE(ctx context.Context, d Device) bool {
	if c, err := m.CharDev(ctx, d, "uverbs"); err == nil && c.Driver != nil {
		return *c.Driver == driverRXE
	}
	// Only rxe has this file: the name of its network device. It is there
	// also while ib_uverbs is not loaded.
	if m.k.Root == nil {
		return false
	}
	_, err := fs.Stat(m.k.Root, "sys/class/infiniband/"+d.Name+"/parent")
	return err == nil
}
