package emu

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// cmBed is a machine with two devices on a wire, and a process with a channel
// for each side.
type cmBed struct {
	m      *Machine
	w      *kerneltest.CMWire
	a, b   *rdmacm.Channel
	pa, pb *Process
	devs   []*kerneltest.CMDevice
}

var cmServer = netip.MustParseAddrPort("10.0.0.2:7471")

func newCMBed(t *testing.T) *cmBed {
	t.Helper()
	bed := &cmBed{m: New(), w: kerneltest.NewCMWire()}
	for name, addr := range map[string]string{"one": "10.0.0.1", "two": "10.0.0.2"} {
		d := bed.w.Device(name, addr)
		bed.devs = append(bed.devs, d)
		require.NoError(t, bed.m.Register(d))
	}
	bed.pa, bed.pb = bed.m.Process("a"), bed.m.Process("b")
	bed.a = must.Get(rdmacm.Open(bed.pa))(t)
	bed.b = must.Get(rdmacm.Open(bed.pb))(t)
	t.Cleanup(func() {
		require.NoError(t, bed.a.Close())
		require.NoError(t, bed.b.Close())
		bed.m.all.cm.mu.Lock()
		defer bed.m.all.cm.mu.Unlock()
		require.Empty(t, bed.m.all.cm.ids)
		require.Empty(t, bed.m.all.cm.ports)
		require.Zero(t, bed.w.Left())
	})
	return bed
}

// qpNumber is a queue pair that takes every move.
type qpNumber uint32

func (q qpNumber) Num() uint32 { return uint32(q) }

func (qpNumber) Modify(*verbs.QPAttr, abi.QPAttrMask) error { return nil }

// acceptOne accepts the next connection.
func acceptOne(l *rdmacm.Listener) {
	if r, err := l.Accept(context.Background()); err == nil {
		_ = r.Accept(context.Background(), qpNumber(0), rdmacm.ConnParam{})
	}
}

// TestCMDeviceGoes: its ids hear it, and can be destroyed.
func TestCMDeviceGoes(t *testing.T) {
	bed := newCMBed(t)
	l := must.Get(bed.b.Listen(cmServer, 0, rdmacm.Options{}))(t)
	id := must.Get(bed.a.Resolve(t.Context(), netip.AddrPort{}, cmServer, rdmacm.Options{}))(t)
	ends := make(chan error, 1)
	go func() {
		_, err := id.Connect(t.Context(), qpNumber(0), rdmacm.ConnParam{})
		ends <- err
	}()
	r := must.Get(l.Accept(t.Context()))(t)
	require.NoError(t, bed.m.Unregister("two"))
	require.Error(t, <-ends)
	<-id.Context().Done()
	require.ErrorIs(t, context.Cause(id.Context()), syscall.ENODEV)
	require.ErrorIs(t, r.Accept(t.Context(), qpNumber(0), rdmacm.ConnParam{}), syscall.ECONNABORTED)
	require.NoError(t, r.Destroy())
	require.NoError(t, id.Destroy())
	require.NoError(t, l.Close())
}

// TestCMProcessEnds: by itself or killed, and its peers are told.
func TestCMProcessEnds(t *testing.T) {
	for name, end := range map[string]func(*cmBed) error{
		"exit": func(b *cmBed) error { b.pb.Exit(); return nil },
		"kill": func(b *cmBed) error { return b.m.Kill(b.pb) },
	} {
		t.Run(name, func(t *testing.T) {
			bed := newCMBed(t)
			l := must.Get(bed.b.Listen(cmServer, 0, rdmacm.Options{}))(t)
			go acceptOne(l)
			id, err := bed.a.Resolve(t.Context(), netip.AddrPort{}, cmServer, rdmacm.Options{})
			require.NoError(t, err)
			must.Get(id.Connect(t.Context(), qpNumber(0), rdmacm.ConnParam{}))(t)
			require.NoError(t, end(bed))
			<-id.Context().Done()
			require.ErrorIs(t, context.Cause(id.Context()), syscall.ECONNRESET)
			must.Fail(l.Accept(t.Context()))(t, net.ErrClosed)
			require.NoError(t, id.Destroy())
		})
	}
}

// TestCMMany: at once, in two processes, with everything closed in the middle.
func TestCMMany(t *testing.T) {
	bed := newCMBed(t)
	l := must.Get(bed.b.Listen(cmServer, 0, rdmacm.Options{}))(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			wg.Go(func() {
				err := r.Accept(context.Background(), qpNumber(r.Peer.QPN), rdmacm.ConnParam{})
				if err == nil {
					<-r.Context().Done()
				}
				if err := r.Destroy(); err != nil {
					t.Error(err)
				}
			})
		}
	})
	var all sync.WaitGroup
	for i := range uint32(300) {
		all.Go(func() {
			id, err := bed.a.Resolve(t.Context(), netip.AddrPort{}, cmServer, rdmacm.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			peer, err := id.Connect(t.Context(), qpNumber(i), rdmacm.ConnParam{})
			if err != nil || peer.QPN != i {
				t.Error(err)
			}
			if err := id.Destroy(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.NoError(t, l.Close())
	wg.Wait()
}

// fuzzed is a command of FuzzCM, with up to 10 bytes at an even offset; cmd may
// be silent.
func fuzzed(cmd abi.UCMCommand, at int, data ...byte) []byte {
	b := make([]byte, 12)
	b[0], b[1] = byte(cmd), byte(at/2)
	copy(b[2:], data)
	return b
}

// FuzzCM gives commands of any bytes to a file whose ids are connected.
func FuzzCM(f *testing.F) {
	for cmd := range byte(24) {
		f.Add([]byte{cmd, 0, 0, 0, 255, 0, 255, 1, 0, 0, 0, 0})
	}
	port7 := []byte{abi.AFInet, 0, 0, 7, 10, 0, 0, 1}
	const silent = 150 // without an address to answer at
	f.Add(slices.Concat(fuzzed(abi.UCMCmdCreateID, 16, 0x06, 1), fuzzed(silent+abi.UCMCmdResolveIP, 28, port7...), fuzzed(silent+abi.UCMCmdResolveRoute, 0),
		fuzzed(silent+abi.UCMCmdConnect, 270, 0, 1), fuzzed(abi.UCMCmdQueryRoute, 8)))
	f.Add(slices.Concat(fuzzed(abi.UCMCmdCreateID, 16, 0x06, 1), fuzzed(silent+abi.UCMCmdBindIP, 8, port7...), fuzzed(silent+abi.UCMCmdListen, 0)))
	f.Add(slices.Concat(fuzzed(abi.UCMCmdCreateID, 16, 0x11, 1), fuzzed(silent+abi.UCMCmdBindIP, 8, port7...), fuzzed(abi.UCMCmdJoinIPMcast, 16, port7...)))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := New()
		w := kerneltest.NewCMWire()
		if err := m.Register(w.Device("one", "10.0.0.1")); err != nil {
			t.Fatal(err)
		}
		p := m.Process("fuzz")
		c, err := p.Open("/dev/infiniband/rdma_cm")
		if err != nil {
			t.Fatal(err)
		}
		page := make([]byte, 512)
		addr, release := c.Pin(page)
		defer release()
		for len(b) >= 4 {
			n := min(len(b), 12)
			cmd := make([]byte, abi.UCMHdrSize+abi.UCMAcceptSize)
			(&abi.UCMHdr{Cmd: abi.UCMCommand(b[0] % 25), In: abi.UCMAcceptSize, Out: 336}).Put(cmd)
			if b[0]&0x80 == 0 {
				at := abi.UCMHdrSize
				if b[0]%25 == byte(abi.UCMCmdCreateID) {
					at += 8
				}
				le.PutUint64(cmd[at:], addr)
			}
			copy(cmd[abi.UCMHdrSize+int(b[1])*2%abi.UCMAcceptSize:], b[2:n])
			b = b[n:]
			_, err := c.Write(cmd)
			var errno syscall.Errno
			if err != nil && !errors.As(err, &errno) {
				t.Fatalf("%v has no number", err)
			}
		}
		p.Exit()
		if w.Left()+len(m.all.cm.ids)+len(m.all.cm.ports) != 0 {
			t.Fatal("something is left")
		}
	})
}
