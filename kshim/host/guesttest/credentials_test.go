//go:build guest && linux

package guesttest

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// watched counts how doorbells are rung.
type watched struct {
	kshim.Kernel
	written, refused, ioctls atomic.Int32
}

type watchedFile struct {
	kshim.File
	k *watched
}

func (w *watched) Open(path string) (kshim.File, error) {
	f, err := w.Kernel.Open(path)
	if err != nil {
		return nil, err
	}
	return watchedFile{f, w}, nil
}

func (f watchedFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if err == nil {
		f.k.written.Add(1)
	} else if e, ok := err.(interface{ Unwrap() error }); ok && e.Unwrap() == syscall.EACCES {
		f.k.refused.Add(1)
	}
	return n, err
}

func (f watchedFile) Ioctl(b []byte) error {
	f.k.ioctls.Add(1)
	return f.File.Ioctl(b)
}

// TestChangedCredentials: the kernel refuses write() to a thread whose
// credentials were changed after the file was opened. Everything works from
// such a thread all the same.
func TestChangedCredentials(t *testing.T) {
	w := &watched{Kernel: kernel(t)}
	c := must.Get(verbs.Open(w, device))(t)
	defer c.Close()
	s := must.Get(makeSelf(c))(t)
	s.write(t)
	require.Equal(t, []int32{1, 0}, []int32{w.written.Load(), w.refused.Load()})

	done := make(chan struct{})
	var asNobody error
	go func() { // the thread ends with the goroutine, because it stays locked
		defer close(done)
		runtime.LockOSThread()
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			asNobody = errno
			return
		}
		before := w.ioctls.Load()
		if asNobody = s.post(); asNobody == nil {
			asNobody = s.poll()
		}
		if asNobody == nil && w.ioctls.Load() == before {
			asNobody = syscall.EPROTO // nothing went by ioctl
		}
		if asNobody == nil { // control calls, too
			asNobody = newSelfOrError(c)
		}
	}()
	<-done
	require.NoError(t, asNobody)
	require.Equal(t, []int32{1, 1}, []int32{w.written.Load(), w.refused.Load()}, "the doorbell was refused once, and rang")
	s.write(t)
	require.Equal(t, int32(2), w.written.Load(), "other threads go on by write()")
}

// self is a queue pair that is its own peer.
type self struct {
	cq  *verbs.CQ
	qp  *verbs.QP
	mr  *verbs.MR
	buf []byte
}

func newSelfOrError(c *verbs.Context) error {
	s, err := makeSelf(c)
	if err != nil {
		return err
	}
	if err := s.qp.Destroy(); err != nil {
		return err
	}
	return s.mr.Dereg()
}

func makeSelf(c *verbs.Context) (*self, error) {
	s := &self{buf: make([]byte, 4096)}
	pd, err := c.AllocPD()
	if err != nil {
		return nil, err
	}
	if s.mr, err = pd.RegMR(s.buf, abi.AccessLocalWrite|abi.AccessRemoteWrite); err != nil {
		return nil, err
	}
	if s.cq, err = c.CreateCQ(16); err != nil {
		return nil, err
	}
	if s.qp, err = pd.CreateQP(verbs.QPInit{SendCQ: s.cq, RecvCQ: s.cq, MaxSendWR: 8, MaxRecvWR: 8}); err != nil {
		return nil, err
	}
	gids, err := c.GIDs(1)
	if err != nil {
		return nil, err
	}
	gid := gids[0]
	for _, g := range gids {
		if g.Addr.Is4In6() {
			gid = g
		}
	}
	for _, step := range []struct {
		attr verbs.QPAttr
		mask abi.QPAttrMask
	}{
		{verbs.QPAttr{State: abi.QPSInit, PortNum: 1, AccessFlags: abi.AccessRemoteWrite},
			abi.QPMaskPort | abi.QPMaskPkeyIndex | abi.QPMaskAccessFlags},
		{verbs.QPAttr{State: abi.QPSRTR, PathMTU: abi.MTU1024, DestQPNum: s.qp.Num(), MinRNRTimer: 12, MaxDestRdAtomic: 1,
			AV: abi.QPDest{DGID: gid.Addr.As16(), SGIDIndex: uint8(gid.Index), HopLimit: 64, IsGlobal: 1, PortNum: 1}},
			abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN | abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer},
		{verbs.QPAttr{State: abi.QPSRTS, Timeout: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 1},
			abi.QPMaskSQPSN | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskMaxQPRdAtomic},
	} {
		if err := s.qp.Modify(&step.attr, step.mask|abi.QPMaskState); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *self) post() error {
	_, err := s.qp.Post([]verbs.SendWR{{
		Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, RemoteAddr: s.mr.Addr() + 2048, RKey: s.mr.RKey(),
		SGE: []verbs.SGE{{Addr: s.mr.Addr(), Length: 100, LKey: s.mr.LKey()}},
	}})
	return err
}

func (s *self) poll() error {
	wc := make([]verbs.WC, 1)
	for {
		n, err := s.cq.Poll(wc)
		switch {
		case err != nil:
			return err
		case n > 0 && wc[0].Status != abi.WCSuccess:
			return syscall.EIO
		case n > 0:
			return nil
		}
		runtime.Gosched()
	}
}

func (s *self) write(t *testing.T) {
	t.Helper()
	require.NoError(t, s.post())
	require.NoError(t, s.poll())
}
