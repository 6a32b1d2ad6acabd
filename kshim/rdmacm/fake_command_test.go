package rdmacm

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// command is the kernel.
func (k *fake) command(f *fakeFile, cmd abi.UCMCommand, in []byte, out int) error {
	if cmd == abi.UCMCmdGetEvent {
		return k.getEvent(f, in, out)
	}
	if cmd == abi.UCMCmdCreateID {
		return k.createID(f, in, out)
	}
	at := map[abi.UCMCommand]int{abi.UCMCmdDestroyID: 8, abi.UCMCmdQuery: 8, abi.UCMCmdInitQPAttr: 8, abi.UCMCmdSetOption: 8,
		abi.UCMCmdConnect: abi.UCMConnParamSize, abi.UCMCmdAccept: 8 + abi.UCMConnParamSize}
	num := binary.LittleEndian.Uint32(in[at[cmd]:])
	k.calls = append(k.calls, fmt.Sprintf("%v %d", cmd, num))
	id := k.ids[num]
	switch {
	case id == nil:
		return syscall.ENOENT
	case id.file != f:
		return syscall.EINVAL
	}
	switch cmd {
	case abi.UCMCmdDestroyID:
		var req abi.UCMDestroyID
		_ = req.Parse(in)
		k.destroy(id)
		return k.answer(req.Response, out, &abi.UCMDestroyIDResp{EventsReported: id.reported}, abi.UCMDestroyIDRespSize)
	case abi.UCMCmdBind, abi.UCMCmdResolveAddr, abi.UCMCmdResolveRoute, abi.UCMCmdListen:
		return k.address(id, cmd, in)
	case abi.UCMCmdQuery:
		return k.queryID(id, in, out)
	case abi.UCMCmdInitQPAttr:
		return k.qpAttr(id, in, out)
	case abi.UCMCmdSetOption:
		var req abi.UCMSetOption
		_ = req.Parse(in)
		value, err := k.mem(req.OptVal, int(req.OptLen))
		if err != nil {
			return err
		}
		if id.options == nil {
			id.options = map[abi.UCMOption]string{}
		}
		id.options[req.OptName] = string(value)
		return nil
	case abi.UCMCmdNotify:
		return nil
	}
	return k.connection(id, cmd, in)
}

func (k *fake) answer(addr uint64, out int, s abi.Struct, size int) error {
	if out < size {
		return syscall.ENOSPC
	}
	b, err := k.mem(addr, size)
	if err != nil {
		return err
	}
	s.Put(b)
	return nil
}

func (k *fake) getEvent(f *fakeFile, in []byte, out int) error {
	var req abi.UCMGetEvent
	_ = req.Parse(in)
	if len(f.events) == 0 {
		return syscall.EAGAIN
	}
	ev := f.events[0]
	f.events = f.events[1:]
	if ev.of != nil {
		ev.of.reported++
	}
	if k.lie != nil {
		k.lie(&ev.resp)
	}
	return k.answer(req.Response, out, &ev.resp, abi.UCMEventRespSize)
}

// newID takes the lowest free number.
func (k *fake) newID(f *fakeFile, uid uint64) *fakeID {
	id := &fakeID{file: f, uid: uid}
	for k.ids[id.num] != nil {
		id.num++
	}
	k.ids[id.num] = id
	return id
}

func (k *fake) createID(f *fakeFile, in []byte, out int) error {
	var req abi.UCMCreateID
	_ = req.Parse(in)
	if req.PS != abi.UCMPSTCP {
		return syscall.EINVAL
	}
	id := k.newID(f, req.UID)
	k.calls = append(k.calls, fmt.Sprintf("CREATE_ID %d", id.num))
	return k.answer(req.Response, out, &abi.UCMCreateIDResp{ID: id.num}, abi.UCMCreateIDRespSize)
}

// destroy frees an id, drops its events and tells its peer.
func (k *fake) destroy(id *fakeID) {
	if id == nil { // went before its request was looked at
		return
	}
	delete(k.ids, id.num)
	kept := id.file.events[:0]
	for _, ev := range id.file.events {
		if ev.of != id {
			kept = append(kept, ev)
		} else if ev.resp.Event == abi.UCMEventConnectRequest {
			k.destroy(k.ids[ev.resp.ID])
		}
	}
	id.file.events = kept
	p := id.peer
	if p == nil {
		return
	}
	p.peer = nil
	switch id.state {
	case "req", "rep", "req sent", "connecting":
		p.state = "ended"
		k.post(p, abi.UCMEventRejected, int32(abi.UCMRejConsumerDefined), nil, abi.UCMRejectData, nil)
	case "connected":
		p.state = "ended"
		k.post(p, abi.UCMEventDisconnected, 0, nil, 0, nil)
	}
}

func (k *fake) address(id *fakeID, cmd abi.UCMCommand, in []byte) error {
	switch cmd {
	case abi.UCMCmdBind:
		var req abi.UCMBind
		_ = req.Parse(in)
		a, err := req.Addr.AddrPort()
		if err != nil {
			return err
		}
		if a.Port() == 0 {
			a = netip.AddrPortFrom(a.Addr(), uint16(40000+id.uid))
		}
		for _, other := range k.ids {
			if other.addr.Port() == a.Port() && other != id {
				return syscall.EADDRINUSE
			}
		}
		id.addr = a
	case abi.UCMCmdListen:
		id.state = "listen"
	case abi.UCMCmdResolveAddr:
		var req abi.UCMResolveAddr
		_ = req.Parse(in)
		if req.TimeoutMS == 0 || id.state != "" {
			return syscall.EINVAL
		}
		id.remote, _ = req.DstAddr.AddrPort()
		id.addr = netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(40000+id.uid))
		id.state = "addr"
		if !k.silent {
			k.post(id, abi.UCMEventAddrResolved, 0, nil, 0, nil)
		}
	case abi.UCMCmdResolveRoute:
		if id.state != "addr" {
			return syscall.EINVAL
		}
		id.state = "route"
		k.post(id, abi.UCMEventRouteResolved, 0, nil, 0, nil)
	}
	return nil
}

func (k *fake) queryID(id *fakeID, in []byte, out int) error {
	var req abi.UCMQuery
	_ = req.Parse(in)
	var resp abi.UCMQueryAddrResp
	if id.addr.IsValid() && !id.addr.Addr().IsUnspecified() {
		resp.NodeGUID, resp.PortNum, resp.Pkey = 0x020000fffe000001, 1, 0xffff
	}
	resp.SrcSize, _ = resp.SrcAddr.Set(id.addr)
	resp.DstSize, _ = resp.DstAddr.Set(id.remote)
	if req.Option == abi.UCMQueryGID {
		for _, s := range []*abi.SockaddrStorage{&resp.SrcAddr, &resp.DstAddr} {
			*s = abi.SockaddrStorage{0: abi.AFIB, 18: 0xff, 19: 0xff, 20: 10, 23: 1}
		}
	}
	return k.answer(req.Response, out, &resp, abi.UCMQueryAddrRespSize)
}

// qpAttr answers masks and accesses as Linux 6.1 does: which accesses the peer
// may have is known when it has answered.
func (k *fake) qpAttr(id *fakeID, in []byte, out int) error {
	var req abi.UCMInitQPAttr
	_ = req.Parse(in)
	if !id.addr.IsValid() || id.state == "ended" {
		return syscall.EINVAL
	}
	attr := abi.QPAttr{QPState: req.QPState, PortNum: 1}
	switch state := abi.QPState(req.QPState); state {
	case abi.QPSInit:
		attr.QPAttrMask = abi.QPMaskState | abi.QPMaskAccessFlags | abi.QPMaskPkeyIndex | abi.QPMaskPort
		if id.peer != nil && id.state != "req sent" {
			attr.QPAccessFlags = abi.AccessRemoteWrite | abi.AccessRemoteRead
		}
	case abi.QPSRTR, abi.QPSRTS:
		if id.peer == nil || id.state == "req sent" && id.peer.state != "rep" {
			return syscall.EINVAL
		}
		attr.QPAttrMask = abi.QPMaskState
		attr.DestQPNum, attr.MaxDestRdAtomic, attr.MaxRdAtomic = id.peer.asked.QPNum, id.peer.asked.InitiatorDepth, id.peer.asked.ResponderResources
	default:
		return syscall.EINVAL
	}
	id.moved = append(id.moved, abi.QPState(req.QPState))
	return k.answer(req.Response, out, &attr, abi.QPAttrSize)
}

// connection carries messages between ids.
func (k *fake) connection(id *fakeID, cmd abi.UCMCommand, in []byte) error {
	p := id.peer
	switch cmd {
	case abi.UCMCmdConnect:
		var req abi.UCMConnect
		_ = req.Parse(in)
		if id.state != "route" || req.ConnParam.Valid != 1 {
			return syscall.EINVAL
		}
		id.state, id.asked = "req sent", req.ConnParam
		if !k.silent {
			k.connect(id)
		}
	case abi.UCMCmdAccept:
		var req abi.UCMAccept
		_ = req.Parse(in)
		switch {
		case id.state == "req" && req.ConnParam.Valid == 1:
			id.state, id.asked, id.uid, p.state = "rep", req.ConnParam, req.UID, "connecting"
			k.post(p, abi.UCMEventConnectResponse, 0, req.ConnParam.Private(), abi.UCMAcceptData, func(c *abi.UCMConnParam) {
				c.QPNum, c.ResponderResources, c.InitiatorDepth = req.ConnParam.QPNum, req.ConnParam.InitiatorDepth, req.ConnParam.ResponderResources
			})
		case id.state == "connecting" && req.ConnParam.Valid == 0:
			id.state, p.state = "connected", "connected"
			if !k.forgetful {
				k.post(p, abi.UCMEventEstablished, 0, nil, 0, nil)
			}
		default:
			return syscall.EINVAL
		}
	case abi.UCMCmdReject:
		var req abi.UCMReject
		_ = req.Parse(in)
		if p == nil {
			return syscall.EINVAL
		}
		if req.Reason == 0 {
			req.Reason = uint8(abi.UCMRejConsumerDefined)
		}
		id.state, p.state, id.peer, p.peer = "ended", "ended", nil, nil
		k.post(p, abi.UCMEventRejected, int32(req.Reason), req.PrivateData[:req.PrivateDataLen], abi.UCMRejectData, nil)
	case abi.UCMCmdDisconnect:
		return k.disconnect(id)
	default:
		return syscall.EINVAL
	}
	return nil
}

func (k *fake) connect(id *fakeID) {
	for _, l := range k.ids {
		if l.state != "listen" || l.addr.Port() != id.remote.Port() {
			continue
		}
		n := k.newID(l.file, 0)
		n.state, n.peer, n.addr, n.remote = "req", id, l.addr, id.addr
		id.peer = n
		k.post(l, abi.UCMEventConnectRequest, 0, id.asked.Private(), abi.UCMConnectData, func(c *abi.UCMConnParam) {
			c.QPNum, c.ResponderResources, c.InitiatorDepth = id.asked.QPNum, id.asked.InitiatorDepth, id.asked.ResponderResources
		})
		l.file.events[len(l.file.events)-1].resp.ID = n.num
		return
	}
	id.state = "ended"
	k.post(id, abi.UCMEventRejected, int32(abi.UCMRejInvalidServiceID), nil, abi.UCMRejectData, nil)
}

func (k *fake) disconnect(id *fakeID) error {
	p := id.peer
	switch id.state {
	case "connected":
		id.state = "disconnecting"
		p.state = "asked"
		k.post(p, abi.UCMEventDisconnected, 0, nil, 0, nil)
	case "asked": // the reply
		id.state = "ended"
		if p != nil && p.state == "disconnecting" {
			p.state = "ended"
			k.post(p, abi.UCMEventDisconnected, 0, nil, 0, nil)
		}
	case "disconnecting", "ended":
	default:
		return syscall.EINVAL
	}
	return nil
}
