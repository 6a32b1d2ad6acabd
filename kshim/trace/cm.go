package trace

import (
	"reflect"
	"strconv"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// ucmCommands are those of /dev/infiniband/rdma_cm. What QUERY answers depends on
// what it asks.
var ucmCommands = map[abi.UCMCommand]command{
	abi.UCMCmdCreateID:     {req: of[abi.UCMCreateID](abi.UCMCreateIDSize), resp: of[abi.UCMCreateIDResp](abi.UCMCreateIDRespSize)},
	abi.UCMCmdDestroyID:    {req: of[abi.UCMDestroyID](abi.UCMDestroyIDSize), resp: of[abi.UCMDestroyIDResp](abi.UCMDestroyIDRespSize)},
	abi.UCMCmdResolveRoute: {req: of[abi.UCMResolveRoute](abi.UCMResolveRouteSize)},
	abi.UCMCmdConnect:      {req: of[abi.UCMConnect](abi.UCMConnectSize)},
	abi.UCMCmdListen:       {req: of[abi.UCMListen](abi.UCMListenSize)},
	abi.UCMCmdAccept:       {req: of[abi.UCMAccept](abi.UCMAcceptSize)},
	abi.UCMCmdReject:       {req: of[abi.UCMReject](abi.UCMRejectSize)},
	abi.UCMCmdDisconnect:   {req: of[abi.UCMDisconnect](abi.UCMDisconnectSize)},
	abi.UCMCmdInitQPAttr:   {req: of[abi.UCMInitQPAttr](abi.UCMInitQPAttrSize), resp: of[abi.QPAttr](abi.QPAttrSize)},
	abi.UCMCmdGetEvent:     {req: of[abi.UCMGetEvent](abi.UCMGetEventSize), resp: layout{func() abi.Struct { return new(ucmEvent) }, abi.UCMEventRespSize}},
	abi.UCMCmdSetOption:    {req: of[abi.UCMSetOption](abi.UCMSetOptionSize)},
	abi.UCMCmdNotify:       {req: of[abi.UCMNotify](abi.UCMNotifySize)},
	abi.UCMCmdMigrateID:    {req: of[abi.UCMMigrateID](abi.UCMMigrateIDSize), resp: of[abi.UCMMigrateResp](abi.UCMMigrateRespSize)},
	abi.UCMCmdQuery:        {req: of[abi.UCMQuery](abi.UCMQuerySize)},
	abi.UCMCmdBind:         {req: of[abi.UCMBind](abi.UCMBindSize)},
	abi.UCMCmdResolveAddr:  {req: of[abi.UCMResolveAddr](abi.UCMResolveAddrSize)},
}

var ucmQueries = map[abi.UCMQueryOption]layout{
	abi.UCMQueryAddr: of[abi.UCMQueryAddrResp](abi.UCMQueryAddrRespSize),
	abi.UCMQueryPath: of[abi.UCMQueryPathResp](abi.UCMQueryPathRespSize),
	abi.UCMQueryGID:  of[abi.UCMQueryAddrResp](abi.UCMQueryAddrRespSize),
}

// ucmEvent is abi.UCMEventResp with its parameter as connected ids have it, those
// that there are.
type ucmEvent struct {
	UID    uint64           `c:"uid"`
	ID     uint32           `c:"id"`
	Event  abi.UCMEvent     `c:"event"`
	Status int32            `c:"status"`
	Param  abi.UCMConnParam `c:"param"`
	ECE    abi.UCMECE       `c:"ece"`
}

func (e *ucmEvent) Put([]byte) {}

func (e *ucmEvent) Parse(b []byte) error {
	var r abi.UCMEventResp
	if err := r.Parse(b); err != nil {
		return err
	}
	*e = ucmEvent{r.UID, r.ID, r.Event, r.Status, r.Conn(), r.ECE}
	return nil
}

// appendUCM shows a command of the connection manager, whose header counts bytes,
// without itself.
func appendUCM(b, cmd []byte) ([]byte, answer) {
	var h abi.UCMHdr
	if h.Parse(cmd) != nil {
		return appendHex(b, cmd), answer{}
	}
	desc := ucmCommands[h.Cmd]
	b = append(b, h.Cmd.String()...)
	req := cmd[abi.UCMHdrSize:]
	if int(h.In) != len(req) && len(cmd) < copyLimit {
		b = strconv.AppendUint(append(b, " in="...), uint64(h.In), 10)
	}
	b = desc.req.append(b, req)
	a := answer{desc: desc}
	if !desc.req.known() || len(req) < desc.req.size {
		return b, a
	}
	s := desc.req.make()
	_ = s.Parse(req)
	if q, ok := s.(*abi.UCMQuery); ok {
		a.desc.resp = ucmQueries[q.Option]
	}
	if at := reflect.ValueOf(s).Elem().FieldByName("Response"); at.IsValid() && a.desc.resp.known() {
		a.core = span{at.Uint(), min(uint64(h.Out), uint64(a.desc.resp.size))}
	}
	return b, a
}

func appendSockaddr(b []byte, s *abi.SockaddrStorage) []byte {
	if a, err := s.AddrPort(); err == nil {
		return append(b, a.String()...)
	}
	if gid, err := s.GID(); err == nil {
		return appendValue(b, "", reflect.ValueOf(gid))
	}
	if allZero(s[:]) {
		return append(b, "none"...)
	}
	return appendHex(b, s[:])
}

// appendConnParam shows the private data that counts.
func appendConnParam(b []byte, p *abi.UCMConnParam) []byte {
	b = appendStruct(b, *p, func(name string) bool {
		return name != "private_data" && (name != "private_data_len" || p.PrivateDataLen > 0)
	})
	if p.PrivateDataLen > 0 {
		b = append(b[:len(b)-1], ", private_data="...)
		b = append(appendHex(b, p.Private()), '}')
	}
	return b
}
