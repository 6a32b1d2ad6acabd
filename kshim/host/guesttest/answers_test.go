//go:build guest && linux

package guesttest

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/tests/must"
)

// answer is an error's number as a word.
func answer(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// TestAnswers makes calls to both kernels that no client of ours makes, because
// the emulator's answers to them were once guesses. Where want has a slash, the
// second word is the emulator's, and its documentation says why.
func TestAnswers(t *testing.T) {
	type bench struct {
		*raw
		pd, cq, qp uint32
		gid        abi.GIDEntry
		mem        uint64 // two pages, aligned, and one that is not there
	}
	register := func(start, length uint64) func(*bench) string {
		return func(b *bench) string {
			req := &abi.RegMR{Response: b.addr, Start: b.mem + start, HCAVA: b.mem + start, Length: length, PDHandle: b.pd,
				AccessFlags: abi.AccessLocalWrite}
			return answer(b.do(abi.CmdRegMR, req, abi.RegMRSize, abi.RegMRRespSize))
		}
	}
	post := func(wrs, sges uint32, more []byte) func(*bench) string {
		return func(b *bench) string {
			require.NoError(b.t, b.toInit(b.qp))
			require.NoError(b.t, b.toRTR(b.qp, b.gid))
			require.NoError(b.t, b.toRTS(b.qp))
			req := &abi.PostSend{Response: b.addr, QPHandle: b.qp, WRCount: wrs, SGECount: sges, WQESize: abi.SendWRSize}
			return answer(b.do(abi.CmdPostSend, req, abi.PostSendSize, abi.PostSendRespSize, more...))
		}
	}
	wr := make([]byte, abi.SendWRSize)
	for _, c := range []struct {
		name string
		ask  func(*bench) string
		want string
	}{
		{"register nothing at a page's start", register(0, 0), "EINVAL"},
		{"register nothing within a page", register(8, 0), "ok/EINVAL"},
		{"register more pages than 32 bits count", register(0, 1<<62), "EINVAL"},
		{"register past the end of addresses", register(0, 1<<64-1), "EINVAL"},
		{"register what is not there", register(0, 3*4096), "EFAULT"},
		{"doorbell", post(0, 0, nil), "ok"},
		{"doorbell with zeroes behind it", post(0, 0, make([]byte, 16)), "ok"},
		{"doorbell with something behind it", post(0, 0, []byte{1, 0, 0, 0}), "ENOTSUP"},
		{"doorbell with a work request", post(1, 0, wr), "ok/EINVAL"},
		{"doorbell with a list that is not there", post(1, 0, nil), "ENOSPC"},
		{"late receive, flushed by a second move to ERR", func(b *bench) string { return lateReceive(b.raw, b.pd) }, abi.WCWRFlushErr.String()},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, k := range kernels(t) {
				b := &bench{raw: newRaw(t, k)}
				b.pd, b.cq, b.gid = b.raw.pd(), b.raw.cq(16), b.raw.gid()
				b.qp = b.raw.qp(b.pd, b.cq).QPHandle
				mem, err := unix.Mmap(-1, 0, 3*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
				require.NoError(t, err)
				require.NoError(t, unix.Mprotect(mem[2*4096:], unix.PROT_NONE))
				addr, release := b.f.Pin(mem)
				b.mem = addr
				want := c.want
				if rxe, emulator, differ := strings.Cut(c.want, "/"); differ {
					if want = emulator; name == "rxe" {
						want = rxe
					}
				}
				t.Cleanup(func() { release(); require.NoError(t, unix.Munmap(mem)) })
				assert.Equal(t, want, c.ask(b), name)
			}
		})
	}
}

// lateReceive puts a receive into the ring of a queue pair that is in ERR,
// where nothing makes the kernel look at it, and moves it to ERR again. It
// gives the status of the receive's completion.
func lateReceive(r *raw, pd uint32) string {
	t := r.t
	req := &abi.CreateCQ{Response: r.addr, UserHandle: 1, CQE: 16, CompChannel: -1}
	require.NoError(t, r.do(abi.CmdCreateCQ, req, abi.CreateCQSize, abi.CreateCQRespSize+abi.RXECreateCQRespSize))
	var made abi.CreateCQResp
	var queue abi.RXECreateCQResp
	require.NoError(t, made.Parse(r.page))
	require.NoError(t, queue.Parse(r.page[abi.CreateCQRespSize:]))
	completions := r.ring(queue.MI).Consumer()
	qp := r.qp(pd, made.CQHandle)
	var queues abi.RXECreateQPResp
	require.NoError(t, queues.Parse(r.page[abi.CreateQPRespSize:]))
	r.ring(queues.SQMI)
	receives := r.ring(queues.RQMI).Producer()

	require.NoError(t, r.toInit(qp.QPHandle))
	toErr := abi.ModifyQP{QPHandle: qp.QPHandle, AttrMask: abi.QPMaskState, QPState: abi.QPSErr}
	require.NoError(t, r.modify(toErr))
	require.NoError(t, ring.EncodeRecv(receives.Slot(0), 7, &ring.RecvWR{}))
	receives.Publish(1)
	require.NoError(t, r.modify(toErr))
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // the kernel does it in the background
		n := must.Get(completions.Ready())(t)
		if n > 0 || time.Now().After(deadline) {
			require.Equal(t, 1, n)
			break
		}
	}
	var wc ring.WC
	require.NoError(t, ring.DecodeWC(completions.Slot(0), &wc))
	require.Equal(t, uint64(7), wc.ID)
	return wc.Status.String()
}

// ring maps a queue.
func (r *raw) ring(mi abi.MMInfo) *ring.Queue {
	r.t.Helper()
	m := must.Get(r.f.Mmap(mi.Offset, int(mi.Size)))(r.t)
	r.t.Cleanup(func() { require.NoError(r.t, r.f.Munmap(m)) })
	q := must.Get(ring.Open(m))(r.t)
	return q
}
