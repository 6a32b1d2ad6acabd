package uapi

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// QueryQP describes a queue pair: its state as the device sees it now, its
// depths, its peer and the parameters agreed with the peer.
func (d *Device) QueryQP(qp QP) (QPInfo, error) {
	q, err := d.pair(qp)
	var attr verbs.QPAttr
	if err == nil {
		if attr, err = q.verbs.Query(); err != nil {
			err = d.ended(err, &q.dead, "the queue pair")
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
		GIDIndex:  d.chosen.gid.Index,
	}
	q.modify.Lock()
	info.Remote = q.remote
	q.modify.Unlock()
	if info.Type == TypeUD {
		info.MTU = d.chosen.mtu
	}
	if !info.Remote.IsZero() {
		info.MTU = attr.PathMTU.Bytes()
		info.RecvPSN = info.Remote.PSN
		info.Timeout = ackTime(attr.Timeout)
		info.Retry = int(attr.RetryCnt)
		info.RNRRetry = int(attr.RNRRetry)
		info.MinRNRTimer = rnrTime(attr.MinRNRTimer)
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
			Name: d.Name, Device: d.Device, Kind: Kind(d.Kind), Driver: d.Driver, NetDev: d.NetDev,
			Address: d.Address, NodeGUID: d.NodeGUID, Open: d.Open, PortState: PortState(d.PortState), Notices: d.Notices,
			Port: d.Port, GIDIndex: d.GIDIndex, GIDReason: d.GIDReason, MTU: d.MTU, MaxMTU: d.MaxMTU,
		}
		for _, g := range d.GIDs {
			info.GIDs = append(info.GIDs, GID{g.Index, g.Addr, GIDType(g.Type), g.NetDev})
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// QueryDevice describes the device, and the port, GID and MTU that were chosen
// automatically, with the reasons.
func (d *Device) QueryDevice() (DeviceInfo, error) {
	info, err := d.queryDevice()
	return info, opError("QueryDevice", "", err)
}

func (d *Device) queryDevice() (DeviceInfo, error) {
	if d.closed.Load() {
		return DeviceInfo{}, errDeviceClosed
	}
	port, err := d.verbs.QueryPort(uint8(d.chosen.port))
	if err != nil {
		return DeviceInfo{}, d.ended(err, &d.closed, "")
	}
	gids, err := d.verbs.GIDs(uint8(d.chosen.port))
	if err != nil {
		return DeviceInfo{}, d.ended(err, &d.closed, "")
	}
	v := d.verbs.Device()
	info := DeviceInfo{
		Name:        v.Name,
		Device:      d.where.OpenName(),
		Kind:        Kind(d.where.Spec.Kind),
		Driver:      v.Driver.String(),
		NetDev:      v.NetDev,
		Address:     d.chosen.addr,
		NodeGUID:    d.limits.guid,
		Open:        true,
		PortState:   PortState(port.State.String()),
		Notices:     d.where.Notices,
		Port:        d.chosen.port,
		GIDs:        gidList(gids, v.NetDev),
		GIDIndex:    d.chosen.gid.Index,
		GIDReason:   d.chosen.reason,
		MTU:         d.chosen.mtu,
		MaxMTU:      port.MaxMTU.Bytes(),
		MaxMessage:  d.limits.message,
		MaxMRSize:   d.limits.mrSize,
		MaxMR:       d.limits.mr,
		MaxQP:       d.limits.qp,
		MaxCQ:       d.limits.cq,
		MaxCQE:      d.limits.cqe,
		MaxDepth:    d.limits.depth,
		MaxSGE:      d.limits.sge,
		MaxRdAtomic: d.limits.rdAtomic,
	}
	return info, nil
}

func gidList(gids []verbs.GID, netDev string) []GID {
	list := make([]GID, len(gids))
	for i, g := range gids {
		list[i] = GID{Index: g.Index, Addr: g.Addr.Unmap(), Type: gidTypeOf(g.Type), NetDev: netDev}
	}
	return list
}

func gidTypeOf(t abi.GIDType) GIDType {
	switch t {
	case abi.GIDTypeRoCEv2:
		return RoCEv2
	case abi.GIDTypeIB, abi.GIDTypeRoCEv1:
		return RoCEv1
	}
	return GIDType(t.String())
}
