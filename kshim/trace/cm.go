package trace

import (
	"reflect"
	"strconv"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// ucmEvent is abi.UCMEventResp with its parameter as ids of connections have
// it.
type ucmEvent struct {
	UID    uint64           `c:"uid"`
	ID     uint32           `c:"id"`
	Event  abi.UCMEvent     `c:"event"`
	Status int32            `c:"status"`
	Param  abi.UCMConnParam `c:"param"`
	ECE    abi.UCMECE       `c:"ece"`
}

// appendUCM shows a command of the connection manager, whose header counts
// bytes, without itself.
func appendUCM(b, cmd []byte) ([]byte, answer) {
	var h abi.UCMHdr
	if h.Parse(cmd) != nil {
		return appendHex(b, cmd), answer{}
	}
	e := abi.LookupUCM(h.Cmd)
	b = append(b, h.Cmd.String()...)
	req := cmd[abi.UCMHdrSize:]
	if int(h.In) != len(req) && len(cmd) < copyLimit {
		b = strconv.AppendUint(append(b, " in="...), uint64(h.In), 10)
	}
	if e == nil {
		e = &abi.Entry{}
	}
	b = appendLayout(b, e.Request, req)
	if e.Request.New == nil || len(req) < e.Request.Size {
		return b, answer{}
	}
	s := e.Request.New()
	_ = s.Parse(req)
	resp := e.Response
	if q, ok := s.(*abi.UCMQuery); ok && h.Cmd == abi.UCMCmdQuery {
		resp = q.Option.Answer()
	}
	at := reflect.ValueOf(s).Elem().FieldByName("Response")
	if !at.IsValid() || resp.New == nil {
		return b, answer{}
	}
	return b, answer{core: part{resp, span{at.Uint(), min(uint64(h.Out), uint64(resp.Size))}}}
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
