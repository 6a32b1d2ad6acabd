//go:build guest && linux

package guesttest

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// verbs is an opened device with a few objects, made by plain write()
// commands. Closing the file frees them all.
type verbs struct {
	t    *testing.T
	file *os.File
	pin  runtime.Pinner
	mem  []byte

	pd, cq     uint32
	qpn        [2]uint32 // the first in INIT, the second in RESET
	lkey, rkey uint32
}

// openVerbs opens a device file and makes a PD, a CQ, an MR and two QPs.
func openVerbs(t *testing.T, path string) *verbs {
	f := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	v := &verbs{t: t, file: f}
	t.Cleanup(v.close)
	v.context()
	v.objects()
	return v
}

func (v *verbs) close() {
	if v.file != nil {
		_ = v.file.Close()
		v.pin.Unpin()
		v.file = nil
	}
}

// call sends a command; the answer has respSize bytes, with rxe's part.
func (v *verbs) call(c abi.Command, respSize int, encode func(b []byte, response uint64)) []byte {
	v.t.Helper()
	resp := make([]byte, (respSize+3)&^3)
	v.pin.Pin(&resp[0])
	body := make([]byte, 256)
	encode(body, uint64(uintptr(unsafe.Pointer(&resp[0]))))
	size := map[abi.Command]int{
		abi.CmdGetContext: abi.GetContextSize, abi.CmdAllocPD: abi.AllocPDSize, abi.CmdCreateCQ: abi.CreateCQSize,
		abi.CmdRegMR: abi.RegMRSize, abi.CmdCreateQP: abi.CreateQPSize, abi.CmdModifyQP: abi.ModifyQPSize,
		abi.CmdCreateSRQ: 32,
	}[c]
	msg := make([]byte, abi.CmdHdrSize, abi.CmdHdrSize+size)
	msg = append(msg, body[:size]...)
	h := abi.CmdHdr{Command: c, InWords: uint16(len(msg) / 4), OutWords: uint16(len(resp) / 4)}
	h.Put(msg)
	n, err := v.file.Write(msg)
	require.NoError(v.t, err, "%v", c)
	require.Equal(v.t, len(msg), n)
	return resp
}

func (v *verbs) context() {
	resp := v.call(abi.CmdGetContext, abi.GetContextRespSize, func(b []byte, r uint64) { (&abi.GetContext{Response: r}).Put(b) })
	var x abi.GetContextResp
	require.NoError(v.t, x.Parse(resp))
	v.t.Cleanup(func() { _ = unix.Close(int(x.AsyncFD)) })
}

// rxe's part of answers: one description of a mapping for a CQ, two for a QP.
const (
	rxeCQ = 16
	rxeQP = 32
)

func (v *verbs) objects() {
	var pd abi.AllocPDResp
	require.NoError(v.t, pd.Parse(v.call(abi.CmdAllocPD, abi.AllocPDRespSize, func(b []byte, r uint64) { (&abi.AllocPD{Response: r}).Put(b) })))
	v.pd = pd.PDHandle

	var cq abi.CreateCQResp
	require.NoError(v.t, cq.Parse(v.call(abi.CmdCreateCQ, abi.CreateCQRespSize+rxeCQ, func(b []byte, r uint64) {
		(&abi.CreateCQ{Response: r, CQE: 63, CompChannel: -1}).Put(b)
	})))
	v.cq = cq.CQHandle

	mem, err := syscall.Mmap(-1, 0, 2*os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(v.t, err)
	v.mem = mem
	start := uint64(uintptr(unsafe.Pointer(&mem[0])))
	var mr abi.RegMRResp
	require.NoError(v.t, mr.Parse(v.call(abi.CmdRegMR, abi.RegMRRespSize, func(b []byte, r uint64) {
		(&abi.RegMR{Response: r, Start: start, Length: uint64(len(mem)), HCAVA: start, PDHandle: v.pd, AccessFlags: abi.AccessLocalWrite | abi.AccessRemoteWrite}).Put(b)
	})))
	v.lkey, v.rkey = mr.LKey, mr.RKey

	for i := range v.qpn {
		v.qpn[i] = v.queuePair(i == 0)
	}
}

func (v *verbs) queuePair(initialised bool) uint32 {
	var qp abi.CreateQPResp
	require.NoError(v.t, qp.Parse(v.call(abi.CmdCreateQP, abi.CreateQPRespSize+rxeQP, func(b []byte, r uint64) {
		(&abi.CreateQP{Response: r, PDHandle: v.pd, SendCQHandle: v.cq, RecvCQHandle: v.cq, MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1, QPType: abi.QPTRC}).Put(b)
	})))
	if initialised {
		v.call(abi.CmdModifyQP, 4, func(b []byte, _ uint64) {
			(&abi.ModifyQP{QPHandle: qp.QPHandle, QPState: abi.QPSInit, PortNum: 1,
				AttrMask: abi.QPMaskState | abi.QPMaskPkeyIndex | abi.QPMaskPort | abi.QPMaskAccessFlags}).Put(b)
		})
	}
	return qp.QPN
}
