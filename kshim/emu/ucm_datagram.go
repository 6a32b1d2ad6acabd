package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// udParam is the parameter of a datagram id's event; to is nil in those that
// tell no way to a peer.
func udParam(to *abi.AHAttr, qpn, qkey uint32, private []byte) *abi.UCMUDParam {
	p := &abi.UCMUDParam{QPNum: qpn, QKey: qkey}
	if to != nil {
		p.AHAttr = *to
	}
	p.PrivateDataLen = uint8(copy(p.PrivateData[:], private[:min(len(private), 255)]))
	return p
}

// useQKey returns the id's Q_Key once it is chosen: the default, where none is
// asked for. EINVAL when the id has another (cma.c: cma_set_qkey).
func (id *ucmID) useQKey(want uint32) (uint32, error) {
	defer id.lockFile().mu.Unlock()
	switch {
	case id.qkey == 0 && want == 0:
		id.qkey = abi.UCMUDPQKey
	case id.qkey == 0:
		id.qkey = want
	case want != 0 && want != id.qkey:
		return 0, fail(syscall.EINVAL, "the id has the Q_Key %#x", id.qkey)
	}
	return id.qkey, nil
}

// answered is the event of an answer to CONNECT of datagrams (cma.c:
// cma_sidr_rep_handler).
func (id *ucmID) answered(ev *driver.CMEvent) {
	if ev.Event != abi.UCMEventEstablished {
		id.post(ev.Event, ev.Status, udParam(nil, 0, 0, ev.Private))
		return
	}
	if _, err := id.useQKey(ev.QKey); err != nil {
		id.post(abi.UCMEventAddrError, -linuxEINVAL, udParam(nil, 0, 0, ev.Private))
		return
	}
	to := id.way(ev.AV.DGID)
	to.DLID, to.TrafficClass, to.FlowLabel = ev.AV.DLID, id.path.TOS, id.flow()
	id.post(ev.Event, 0, udParam(to, ev.Peer.QPN, ev.QKey, ev.Private))
}

// linuxEINVAL is Linux's number of EINVAL, which the ABI carries on every host.
const linuxEINVAL = 22

// way is the address vector to a GID from the id's device.
func (id *ucmID) way(gid [16]byte) *abi.AHAttr {
	return &abi.AHAttr{DGID: gid, SGIDIndex: uint8(id.path.GIDIndex), HopLimit: pathHopLimit, IsGlobal: 1, PortNum: 1}
}

// answer is ACCEPT of a question for a datagram's queue pair; without a
// parameter it names none.
func (id *ucmID) answer(req *abi.UCMAccept) error {
	if id.active {
		return fail(syscall.EINVAL, "the id asked itself")
	}
	if req.ConnParam.PrivateDataLen > abi.UCMAnswerData {
		_ = id.conn.Reject(abi.UCMRejConsumerDefined, nil) // cma.c: rdma_accept
		return fail(syscall.EINVAL, "an answer carries %d bytes of private data", abi.UCMAnswerData)
	}
	qkey, err := id.useQKey(0)
	if err != nil {
		return err
	}
	r := driver.CMReply{QKey: qkey}
	if req.ConnParam.Valid == 0 {
		return id.conn.Accept(&r)
	}
	r.Param, r.Private = param(&req.ConnParam), req.ConnParam.Private()
	if err := id.conn.Accept(&r); err != nil {
		return err
	}
	id.setUID(req.UID)
	return nil
}
