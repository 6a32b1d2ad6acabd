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
	var err error
	bed.a, err = rdmacm.Open(bed.pa)
	require.NoError(t, err)
	bed.b, err = rdmacm.Open(bed.pb)
	require.NoError(t, err)
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

// qpNote is a queue pair that notes its moves.
type qpNote struct {
	num   uint32
	attrs []verbs.QPAttr
	masks []abi.QPAttrMask
}

func (q *qpNote) Num() uint32 { return q.num }

func (q *qpNote) Modify(a *verbs.QPAttr, mask abi.QPAttrMask) error {
	q.attrs, q.masks = append(q.attrs, *a), append(q.masks, mask)
	return nil
}

// TestCMConnection: the client of the real kernel's file connects on this one,
// and gets the answers of rdma_rxe of Linux 6.1.
func TestCMConnection(t *testing.T) {
	bed := newCMBed(t)
	l, err := bed.b.Listen(cmServer, 0, rdmacm.Options{})
	require.NoError(t, err)
	served := make(chan *rdmacm.Request, 1)
	qa, qb := &qpNote{num: 0x111}, &qpNote{num: 0x222}
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			err = r.Accept(context.Background(), qb, rdmacm.ConnParam{Private: []byte("back"), ResponderResources: 2, InitiatorDepth: 4})
		}
		if err != nil {
			t.Error(err)
		}
		served <- r
	}()
	id, err := bed.a.Resolve(t.Context(), netip.AddrPort{}, cmServer, rdmacm.Options{TOS: 3})
	require.NoError(t, err)
	name, err := id.Device()
	require.NoError(t, err)
	require.Equal(t, "two", name, "the one that the system prefers")
	route, err := id.Route()
	require.NoError(t, err)
	require.Equal(t, cmServer, route.Remote)
	require.NotZero(t, route.Local.Port())
	peer, err := id.Connect(t.Context(), qa, rdmacm.ConnParam{Private: []byte("there"), ResponderResources: 4, InitiatorDepth: 2, RetryCount: 7})
	require.NoError(t, err)
	require.Len(t, peer.Private, abi.UCMAcceptData)
	require.Equal(t, "back", string(peer.Private[:4]))
	require.Equal(t, uint32(0x222), peer.QPN)
	r := <-served
	require.Equal(t, "there", string(r.Peer.Private[:5]))
	require.Equal(t, []uint8{2, 4}, []uint8{r.Peer.ResponderResources, r.Peer.InitiatorDepth})
	name, err = r.Device()
	require.NoError(t, err)
	require.Equal(t, "two", name)

	require.Equal(t, []abi.QPAttrMask{0x39, 0x39, 0x129181, 0x12e01}, qa.masks)
	require.Equal(t, []abi.QPAttrMask{0x39, 0x129181, 0x12e01}, qb.masks)
	require.Zero(t, qa.attrs[0].AccessFlags, "not known yet")
	require.Equal(t, abi.AccessRemoteWrite|abi.AccessRemoteRead|abi.AccessRemoteAtomic, qa.attrs[1].AccessFlags)
	rtr := qa.attrs[2]
	require.Equal(t, uint32(0x222), rtr.DestQPNum)
	require.Equal(t, abi.QPDest{DGID: netip.MustParseAddr("::ffff:10.0.0.2").As16(), SGIDIndex: 5, HopLimit: 64, IsGlobal: 1, PortNum: 1}, rtr.AV)
	require.Equal(t, uint8(4), rtr.MaxDestRdAtomic)

	require.NoError(t, id.Disconnect())
	<-r.Context().Done()
	require.ErrorIs(t, context.Cause(r.Context()), syscall.ECONNRESET)
	<-id.Context().Done()
	for _, end := range []*rdmacm.ID{id, r.ID} {
		for _, want := range []abi.UCMEvent{abi.UCMEventDisconnected, abi.UCMEventTimewaitExit} {
			ev, err := end.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, ev.Type)
		}
		require.NoError(t, end.Destroy())
	}
}

func TestCMRefusals(t *testing.T) {
	bed := newCMBed(t)
	id, err := bed.a.Resolve(t.Context(), netip.AddrPort{}, cmServer, rdmacm.Options{})
	require.NoError(t, err)
	_, err = id.Connect(t.Context(), &qpNote{}, rdmacm.ConnParam{})
	require.ErrorContains(t, err, "nobody listens")
	require.NoError(t, id.Destroy())

	_, err = bed.a.Resolve(t.Context(), netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:1"), rdmacm.Options{})
	require.ErrorIs(t, err, syscall.ENETUNREACH)
	_, err = bed.a.Listen(netip.MustParseAddrPort("192.0.2.1:1"), 0, rdmacm.Options{})
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	local, err := bed.b.Listen(netip.MustParseAddrPort("127.0.0.1:0"), 0, rdmacm.Options{})
	require.NoError(t, err, "any address")
	_, err = bed.b.Listen(netip.AddrPortFrom(cmServer.Addr(), local.Addr().Port()), 0, rdmacm.Options{})
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)

	all, err := bed.b.Listen(netip.MustParseAddrPort("[::]:0"), 1, rdmacm.Options{})
	require.NoError(t, err)
	_, err = bed.b.Listen(netip.AddrPortFrom(cmServer.Addr(), all.Addr().Port()), 0, rdmacm.Options{})
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	one, err := bed.b.Listen(netip.AddrPortFrom(cmServer.Addr(), 0), 1, rdmacm.Options{})
	require.NoError(t, err)
	_, err = bed.b.Listen(one.Addr(), 0, rdmacm.Options{})
	require.ErrorIs(t, err, syscall.EADDRINUSE)

	rejected := make(chan error, 1)
	go func() {
		r, err := all.Accept(context.Background())
		if err == nil {
			err = r.Reject(abi.UCMRejVendorOptionNotSupported, []byte("no"))
		}
		rejected <- err
	}()
	for _, addr := range []string{"10.0.0.1", "10.0.0.2"} { // a wildcard is both devices
		to := netip.AddrPortFrom(netip.MustParseAddr(addr), all.Addr().Port())
		id, err := bed.a.Resolve(t.Context(), netip.AddrPort{}, to, rdmacm.Options{})
		require.NoError(t, err)
		if addr == "10.0.0.2" {
			require.NoError(t, <-rejected)
			require.NoError(t, all.Close())
		}
		_, err = id.Connect(t.Context(), &qpNote{}, rdmacm.ConnParam{})
		var rej *rdmacm.RejectedError
		require.ErrorAs(t, err, &rej)
		if addr == "10.0.0.1" {
			require.Equal(t, abi.UCMRejVendorOptionNotSupported, rej.Reason)
			require.Equal(t, "no", string(rej.Private[:2]))
		}
		require.NoError(t, id.Destroy())
	}
}

// TestCMDeviceGoes: its ids hear it, and can be destroyed.
func TestCMDeviceGoes(t *testing.T) {
	bed := newCMBed(t)
	l, err := bed.b.Listen(cmServer, 0, rdmacm.Options{})
	require.NoError(t, err)
	id, err := bed.a.Resolve(t.Context(), netip.AddrPort{}, cmServer, rdmacm.Options{})
	require.NoError(t, err)
	ends := make(chan error, 1)
	go func() {
		_, err := id.Connect(t.Context(), &qpNote{}, rdmacm.ConnParam{})
		ends <- err
	}()
	r, err := l.Accept(t.Context())
	require.NoError(t, err)
	require.NoError(t, bed.m.Unregister("two"))
	require.Error(t, <-ends)
	<-id.Context().Done()
	require.ErrorIs(t, context.Cause(id.Context()), syscall.ENODEV)
	require.ErrorIs(t, r.Accept(t.Context(), &qpNote{}, rdmacm.ConnParam{}), syscall.ECONNABORTED)
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
			l, err := bed.b.Listen(cmServer, 0, rdmacm.Options{})
			require.NoError(t, err)
			go func() {
				if r, err := l.Accept(context.Background()); err == nil {
					_ = r.Accept(context.Background(), &qpNote{}, rdmacm.ConnParam{})
				}
			}()
			id, err := bed.a.Resolve(t.Context(), netip.AddrPort{}, cmServer, rdmacm.Options{})
			require.NoError(t, err)
			_, err = id.Connect(t.Context(), &qpNote{}, rdmacm.ConnParam{})
			require.NoError(t, err)
			require.NoError(t, end(bed))
			<-id.Context().Done()
			require.ErrorIs(t, context.Cause(id.Context()), syscall.ECONNRESET)
			_, err = l.Accept(t.Context())
			require.ErrorIs(t, err, net.ErrClosed)
			require.NoError(t, id.Destroy())
		})
	}
}

// TestCMMany: at once, in two processes, with everything closed in the middle.
func TestCMMany(t *testing.T) {
	bed := newCMBed(t)
	l, err := bed.b.Listen(cmServer, 0, rdmacm.Options{})
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			wg.Go(func() {
				err := r.Accept(context.Background(), &qpNote{num: r.Peer.QPN}, rdmacm.ConnParam{})
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
			peer, err := id.Connect(t.Context(), &qpNote{num: i}, rdmacm.ConnParam{})
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

// TestCMErrnos of commands that are none.
func TestCMErrnos(t *testing.T) {
	m := New()
	p := m.Process("raw")
	_, err := p.Open("/dev/infiniband/rdma_cm")
	require.ErrorIs(t, err, syscall.ENOENT, "no device has one")
	require.NoError(t, m.Register(kerneltest.NewCMWire().Device("one", "10.0.0.1")))
	f, err := p.Open("/dev/infiniband/rdma_cm")
	require.NoError(t, err)
	defer f.Close()
	other, err := p.Open("/dev/infiniband/rdma_cm")
	require.NoError(t, err)
	defer other.Close()
	page := make([]byte, 512)
	addr, release := f.Pin(page)
	defer release()
	raw := func(cmd abi.UCMCommand, in, out int, s abi.Struct, size int) []byte {
		b := make([]byte, abi.UCMHdrSize+size)
		(&abi.UCMHdr{Cmd: cmd, In: uint16(in), Out: uint16(out)}).Put(b)
		if s != nil {
			s.Put(b[abi.UCMHdrSize:])
		}
		return b
	}
	create := raw(abi.UCMCmdCreateID, 24, 4, &abi.UCMCreateID{UID: 1, Response: addr, PS: abi.UCMPSTCP}, 24)
	_, err = f.Write(create)
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		cmd  []byte
		want error
	}{
		{"short", create[:7], syscall.EINVAL},
		{"less than the header says", create[:31], syscall.EINVAL},
		{"no room for the answer", raw(abi.UCMCmdCreateID, 24, 3, &abi.UCMCreateID{PS: abi.UCMPSTCP}, 24), syscall.ENOSPC},
		{"answer elsewhere", raw(abi.UCMCmdCreateID, 24, 4, &abi.UCMCreateID{PS: abi.UCMPSTCP, Response: 64}, 24), syscall.EFAULT},
		{"port space", raw(abi.UCMCmdCreateID, 24, 4, &abi.UCMCreateID{PS: 1, Response: addr}, 24), syscall.EINVAL},
		{"beyond the table", raw(23, 0, 0, nil, 0), syscall.EINVAL},
		{"GET_OPTION", raw(abi.UCMCmdGetOption, 0, 0, nil, 0), syscall.ENOSYS},
		{"JOIN_IP_MCAST without room", raw(abi.UCMCmdJoinIPMcast, 0, 3, nil, 0), syscall.ENOSPC},
		{"JOIN_IP_MCAST at no address", raw(abi.UCMCmdJoinIPMcast, 48, 4, &abi.UCMJoinIPMcast{Response: addr}, 48), syscall.EINVAL},
		{"QUERY_ROUTE without room", raw(abi.UCMCmdQueryRoute, 16, 199, &abi.UCMQuery{Response: addr}, 16), syscall.ENOSPC},
		{"QUERY_ROUTE elsewhere", raw(abi.UCMCmdQueryRoute, 16, 208, &abi.UCMQuery{Response: 64}, 16), syscall.EFAULT},
		{"no event", raw(abi.UCMCmdGetEvent, 8, 336, &abi.UCMGetEvent{Response: addr}, 8), syscall.EAGAIN},
		{"no such id", raw(abi.UCMCmdDisconnect, 4, 0, &abi.UCMDisconnect{ID: 9}, 4), syscall.ENOENT},
		{"never connected", raw(abi.UCMCmdDisconnect, 4, 0, &abi.UCMDisconnect{}, 4), syscall.EINVAL},
		{"question", raw(abi.UCMCmdQuery, 16, 280, &abi.UCMQuery{Response: addr, Option: 7}, 16), syscall.ENOSYS},
		{"option", raw(abi.UCMCmdSetOption, 24, 0, &abi.UCMSetOption{OptVal: addr, OptName: 9, OptLen: 1}, 24), syscall.ENOSYS},
		{"option's length", raw(abi.UCMCmdSetOption, 24, 0, &abi.UCMSetOption{OptVal: addr, OptLen: 4}, 24), syscall.EINVAL},
		{"option elsewhere", raw(abi.UCMCmdSetOption, 24, 0, &abi.UCMSetOption{OptVal: 64, OptLen: 1}, 24), syscall.EFAULT},
		{"address of no family", raw(abi.UCMCmdBind, 136, 0, &abi.UCMBind{AddrSize: 16}, 136), syscall.EINVAL},
	} {
		n, err := f.Write(c.cmd)
		require.ErrorIs(t, err, c.want, c.name)
		require.Zero(t, n)
	}
	_, err = other.Write(raw(abi.UCMCmdDisconnect, 4, 0, &abi.UCMDisconnect{}, 4))
	require.ErrorIs(t, err, syscall.EINVAL, "another file's")
	_, err = f.Read(t.Context(), page)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.NoError(t, f.Close())
	_, err = f.Write(create)
	require.ErrorIs(t, err, syscall.EBADF)
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
