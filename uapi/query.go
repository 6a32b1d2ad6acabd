package uapi

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// QueryQP describes a queue pair: its state as the device sees it now, its
// depths, its peer and the parameters agreed with the peer.
func (c *Context) QueryQP(qp QP) (QPInfo, error) {
	q, err := c.pair(qp)
	var attr verbs.QPAttr
	if err == nil {
		if attr, err = q.verbs.Query(); err != nil {
			err = c.ended(err, &q.dead, "the queue pair")
		}
	}
	if err != nil {
		return QPInfo{}, opError("QueryQP", qpName(qp), err)
	}
	info := QPInfo{
		QP:        qp,
		Type:      q.config.Type,
		QKey:      q.config.QKey,
		PD:        q.config.PD,
		State:     QPState(attr.State),
		SendCQ:    q.send.handle,
		RecvCQ:    q.recv.handle,
		SRQ:       q.config.SRQ,
		SendDepth: q.config.SendDepth,
		RecvDepth: q.config.RecvDepth,
		SendSGE:   q.config.SendSGE,
		RecvSGE:   q.config.RecvSGE,
		Inline:    q.config.Inline,
		SendPSN:   q.psn,
		GIDIndex:  c.chosen.gid.Index,
	}
	q.modify.Lock()
	info.Remote = q.remote
	q.modify.Unlock()
	if info.Type == TypeUD {
		info.MTU = c.chosen.mtu
	}
	if !info.Remote.IsZero() {
		info.MTU = attr.PathMTU.Bytes()
		info.RecvPSN = info.Remote.PSN
		info.Timeout = int(attr.Timeout)
		info.Retry = int(attr.RetryCnt)
		info.RNRRetry = int(attr.RNRRetry)
		info.MinRNRTimer = int(attr.MinRNRTimer)
		info.MaxRdAtomic = int(attr.MaxRdAtomic)
	}
	return info, nil
}

// Devices lists the devices that Open can open on this machine without opening
// any: a soft device for every address of its interfaces, the soft devices that
// this process has open, and the real kernel's devices. Fields that are known
// only of an open device are zero.
func Devices() ([]DeviceInfo, error) {
	list, err := device.List()
	if err != nil {
		return nil, opError("Devices", "", err)
	}
	var infos []DeviceInfo
	for _, d := range list {
		info := DeviceInfo{
			Name: d.Name, Device: d.Device, Kind: d.Kind, Driver: d.Driver, NetDev: d.NetDev,
			Address: d.Address, NodeGUID: d.NodeGUID, Open: d.Open, PortState: d.PortState, Notices: d.Notices,
			Port: d.Port, GIDIndex: d.GIDIndex, GIDReason: d.GIDReason, MTU: d.MTU, MaxMTU: d.MaxMTU,
		}
		for _, g := range d.GIDs {
			info.GIDs = append(info.GIDs, GID(g))
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// QueryDevice describes the device, and the port, GID and MTU that were chosen
// automatically, with the reasons.
func (c *Context) QueryDevice() (DeviceInfo, error) {
	info, err := c.queryDevice()
	return info, opError("QueryDevice", "", err)
}

func (c *Context) queryDevice() (DeviceInfo, error) {
	if c.closed.Load() {
		return DeviceInfo{}, errContextClosed
	}
	port, err := c.verbs.QueryPort(uint8(c.chosen.port))
	if err != nil {
		return DeviceInfo{}, c.ended(err, &c.closed, "")
	}
	gids, err := c.verbs.GIDs(uint8(c.chosen.port))
	if err != nil {
		return DeviceInfo{}, c.ended(err, &c.closed, "")
	}
	d := c.verbs.Device()
	info := DeviceInfo{
		Name:        d.Name,
		Device:      c.device.OpenName(),
		Kind:        string(c.device.Spec.Kind),
		Driver:      d.Driver.String(),
		NetDev:      d.NetDev,
		Address:     c.chosen.addr,
		NodeGUID:    c.limits.guid,
		Open:        true,
		PortState:   port.State.String(),
		Notices:     c.device.Notices,
		Port:        c.chosen.port,
		GIDs:        gidList(gids, d.NetDev),
		GIDIndex:    c.chosen.gid.Index,
		GIDReason:   c.chosen.reason,
		MTU:         c.chosen.mtu,
		MaxMTU:      port.MaxMTU.Bytes(),
		MaxMessage:  c.limits.message,
		MaxMRSize:   c.limits.mrSize,
		MaxMR:       c.limits.mr,
		MaxQP:       c.limits.qp,
		MaxCQ:       c.limits.cq,
		MaxCQE:      c.limits.cqe,
		MaxDepth:    c.limits.depth,
		MaxSGE:      c.limits.sge,
		MaxRdAtomic: c.limits.rdAtomic,
	}
	return info, nil
}

func gidList(gids []verbs.GID, netDev string) []GID {
	list := make([]GID, len(gids))
	for i, g := range gids {
		list[i] = GID{Index: g.Index, Addr: g.Addr.Unmap(), Type: gidTypeName(g.Type), NetDev: netDev}
	}
	return list
}

// gidTypeName is how sysfs prints a GID's type.
func gidTypeName(t abi.GIDType) string {
	switch t {
	case abi.GIDTypeRoCEv2:
		return "RoCE v2"
	case abi.GIDTypeIB, abi.GIDTypeRoCEv1:
		return "IB/RoCE v1"
	}
	return t.String()
}
