package rdmanl

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/nldev"
)

// kind is a kind of object.
type kind struct {
	name           string // to emu, and in the summary
	command, table string
	perPort        bool // its requests name a port
	id             func(*attributes) *uint32
	fill           func(o *emu.ObjectInfo, pid uint32) []byte
}

// kinds are in the order of the summary.
var kinds = [...]kind{
	{"pd", "RES_PD_GET", "RES_PD", false, func(a *attributes) *uint32 { return a.PDN }, fillPD},
	{"cq", "RES_CQ_GET", "RES_CQ", false, func(a *attributes) *uint32 { return a.CQN }, fillCQ},
	{"qp", "RES_QP_GET", "RES_QP", true, func(a *attributes) *uint32 { return a.QPN }, fillQP},
	{"cm_id", "RES_CM_ID_GET", "RES_CM_ID", true, func(a *attributes) *uint32 { return a.CMN }, fillCMID},
	{"mr", "RES_MR_GET", "RES_MR", false, func(a *attributes) *uint32 { return a.MRN }, fillMR},
	{"ctx", "RES_CTX_GET", "RES_CTX", false, func(a *attributes) *uint32 { return a.CTXN }, fillCTX},
	{"srq", "RES_SRQ_GET", "RES_SRQ", false, func(a *attributes) *uint32 { return a.SRQN }, fillSRQ},
}

// beside asks the other processes.
func (q *query) beside() [][]byte {
	if q.server.Beside == nil {
		return nil
	}
	return q.server.Beside(q.sent.all)
}

// pid is the PID of an object's owner.
func (s *Server) pid(owner *emu.Process) uint32 {
	if s.PIDOf != nil && owner != s.Process {
		return uint32(s.PIDOf(owner))
	}
	return uint32(s.PID)
}

// one is a request for an object (res_get_common_doit).
func (k *kind) one(q *query) ([]byte, error) {
	id := k.id(&q.attrs)
	d, err := q.device()
	if err != nil || id == nil {
		return nil, syscall.EINVAL
	}
	port, err := q.port(d)
	if err != nil || (port != 0) != k.perPort {
		return nil, syscall.EINVAL
	}
	for _, o := range q.server.Process.Objects(d, k.name) {
		if o.ID == *id {
			if port != 0 && o.Port != port {
				return nil, syscall.EAGAIN
			}
			return append(handle(d), k.fill(&o, q.server.pid(o.Owner))...), nil
		}
	}
	if others := q.beside(); len(others) > 0 {
		return others[0], nil
	}
	return nil, syscall.ENOENT
}

// dump lists objects, in tables of as many as a message takes
// (res_get_common_dumpit).
func (k *kind) dump(q *query) (list [][]byte, err error) {
	d, err := q.device()
	if err != nil {
		return nil, err
	}
	port, err := q.port(d)
	if err != nil {
		return nil, err
	}
	var table []byte
	end := func() {
		if len(table) > 0 {
			list = append(list, handle(d, k.table, table))
			table = nil
		}
	}
	for _, o := range q.server.Process.Objects(d, k.name) {
		if port != 0 && k.perPort && o.Port != port {
			continue
		}
		entry := nldev.Encode(k.table+"_ENTRY", k.fill(&o, q.server.pid(o.Owner)))
		if len(table)+len(entry) > messageRoom {
			end()
		}
		table = append(table, entry...)
	}
	end()
	return append(list, q.beside()...), nil
}

// total is an entry of a summary.
type total struct {
	Name  string `nldev:"RES_SUMMARY_ENTRY_NAME,required"`
	Count uint64 `nldev:"RES_SUMMARY_ENTRY_CURR,required"`
}

// summary is RES_GET: how many objects there are of each kind. A dump of it is
// of this process alone.
func summary(q *query, d emu.DeviceInfo) ([]byte, error) {
	counts := map[string]uint64{}
	if q.sent.flags&flagDump == 0 {
		for _, payload := range q.beside() {
			others, err := nldev.DecodeTable[total](payload, "RES_SUMMARY")
			if err != nil {
				continue
			}
			for _, o := range others {
				counts[o.Name] += o.Count
			}
		}
	}
	var table []byte
	for _, k := range kinds {
		n := counts[k.name] + uint64(len(q.server.Process.Objects(d, k.name)))
		table = append(table, nldev.Encode("RES_SUMMARY_ENTRY", nldev.Encode("RES_SUMMARY_ENTRY_NAME", k.name, "RES_SUMMARY_ENTRY_CURR", n))...)
	}
	return handle(d, "RES_SUMMARY", table), nil
}

func fillPD(o *emu.ObjectInfo, pid uint32) []byte {
	return nldev.Encode("RES_LOCAL_DMA_LKEY", uint32(0), "RES_USECNT", uint64(o.Users), "RES_PDN", o.ID, "RES_CTXN", o.Context, "RES_PID", pid)
}

func fillCQ(o *emu.ObjectInfo, pid uint32) []byte {
	return nldev.Encode("RES_CQE", o.CQE, "RES_USECNT", uint64(o.Users), "DEV_DIM", uint8(0), "RES_CQN", o.ID, "RES_CTXN", o.Context, "RES_PID", pid)
}

func fillQP(o *emu.ObjectInfo, pid uint32) []byte {
	var b []byte
	if o.Port != 0 {
		b = nldev.Encode("PORT_INDEX", uint32(o.Port))
	}
	b = append(b, nldev.Encode("RES_LQPN", o.ID, "RES_PDN", o.PD, "RES_PID", pid)...)
	connected := o.Type == abi.QPTRC || o.Type == abi.QPTUC
	if connected {
		b = append(b, nldev.Encode("RES_RQPN", o.QP.DestQPNum, "RES_RQ_PSN", o.QP.RQPSN)...)
	}
	b = append(b, nldev.Encode("RES_SQ_PSN", o.QP.SQPSN)...)
	if connected {
		b = append(b, nldev.Encode("RES_PATH_MIG_STATE", uint8(o.QP.PathMigState))...)
	}
	return append(b, nldev.Encode("RES_TYPE", uint8(o.Type), "RES_STATE", uint8(o.QP.QPState))...)
}

func fillMR(o *emu.ObjectInfo, pid uint32) []byte {
	return nldev.Encode("RES_RKEY", o.RKey, "RES_LKEY", o.LKey, "RES_MRLEN", o.Length, "RES_MRN", o.ID, "RES_PDN", o.PD, "RES_PID", pid)
}

func fillCTX(o *emu.ObjectInfo, pid uint32) []byte {
	return nldev.Encode("RES_CTXN", o.ID, "RES_PID", pid)
}

func fillCMID(o *emu.ObjectInfo, pid uint32) []byte {
	b := nldev.Encode("PORT_INDEX", uint32(o.Port))
	if o.QPN != 0 {
		b = append(b, nldev.Encode("RES_LQPN", o.QPN, "RES_TYPE", uint8(o.Type))...)
	}
	b = append(b, nldev.Encode("RES_PS", uint32(o.Space), "RES_STATE", o.State)...)
	if o.Src != (abi.SockaddrStorage{}) {
		b = append(b, nldev.Encode("RES_SRC_ADDR", o.Src[:])...)
	}
	if o.Dst != (abi.SockaddrStorage{}) {
		b = append(b, nldev.Encode("RES_DST_ADDR", o.Dst[:])...)
	}
	return append(b, nldev.Encode("RES_CM_IDN", o.ID, "RES_PID", pid)...)
}

// fillSRQ lists the queue pairs as runs of numbers (fill_res_srq_qps), as many
// as a message takes.
func fillSRQ(o *emu.ObjectInfo, pid uint32) []byte {
	var table []byte
	for i := 0; i < len(o.QPs) && len(table) < messageRoom/2; {
		first, last := o.QPs[i], o.QPs[i]
		for i++; i < len(o.QPs) && o.QPs[i] == last+1; i++ {
			last++
		}
		run := nldev.Encode("MIN_RANGE", first, "MAX_RANGE", last)
		if first == last {
			run = nldev.Encode("RES_LQPN", first)
		}
		table = append(table, nldev.Encode("RES_QP_ENTRY", nldev.Nested(run))...)
	}
	return append(nldev.Encode("RES_SRQN", o.ID, "RES_TYPE", uint8(0), "RES_PDN", o.PD, "RES_QP", nldev.Nested(table)), nldev.Encode("RES_PID", pid)...)
}
