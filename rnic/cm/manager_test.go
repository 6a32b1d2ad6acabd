package cm_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

// pair is two hosts whose programs accept and confirm at once; the passive ends
// of connections are appended to passive.
func pair(t testing.TB, cfg cm.Config) (w *world, a, b *host, passive *[]wire.CommID) {
	w = newWorld(t)
	a, b = w.host("a", cfg), w.host("b", cfg)
	passive = new([]wire.CommID)
	must.Get(b.m.Listen(wire.TCPService(1), netip.Addr{}, 10_000))(t)
	w.told = func(h *host, e cm.Event) {
		switch e.Kind {
		case cm.ConnectRequest:
			*passive = append(*passive, e.Conn)
			require.NoError(t, h.m.Accept(w.now, e.Conn, h.acceptParams("")))
			h.settle()
		case cm.ConnectResponse:
			require.NoError(t, h.m.Confirm(e.Conn))
			h.settle()
		}
	}
	return w, a, b, passive
}

func (h *host) connect(t testing.TB, to *host) wire.CommID {
	id := must.Get(h.m.Connect(h.w.now, h.params(to, 1, "")))(t)
	h.settle()
	return id
}

// TestMessagesFromAnotherPort: a user of the peer's host who knows all
// identifiers ends no connection of a soft device, which is known by its
// handshake to send from the port that it receives at. rxe's source port tells
// nothing.
func TestMessagesFromAnotherPort(t *testing.T) {
	for name, port := range map[string]uint16{"soft": wire.Port, "rxe": 0xc123} {
		w, a, b, passive := pair(t, cm.Config{})
		a.port, b.port = port, port
		id := a.connect(t, b)
		w.advance(10 * hop)
		require.Equal(t, cm.Established, a.m.State(id), name)
		var dreqs []*flight
		w.fate = func(f *flight) []cm.Duration { dreqs = append(dreqs, f); return nil }
		require.NoError(t, a.m.Disconnect(w.now, id))
		require.NoError(t, b.m.Disconnect(w.now, (*passive)[0]))
		a.settle()
		b.settle()
		require.Len(t, dreqs, 2)
		for _, f := range dreqs {
			at := id
			if f.to == b {
				at = (*passive)[0]
			}
			f.to.m.Receive(w.now, netip.AddrPortFrom(f.from.addr.Addr(), 0xd000), f.mad[:])
			ended := f.to.m.State(at) == cm.TimeWait
			require.Equal(t, name == "rxe", ended, name)
			require.Equal(t, name == "soft", f.to.m.Counters().DropPeer == 1, name)
			f.to.m.Receive(w.now, netip.AddrPortFrom(f.from.addr.Addr(), f.from.port), f.mad[:])
			require.Equal(t, cm.TimeWait, f.to.m.State(at), name)
		}
	}
}

// Each message's room for private data, and one byte more.
func TestPrivateData(t *testing.T) {
	w, a, b := twoHosts(t)
	must.Get(b.m.Listen(wire.TCPService(1), netip.Addr{}, 9))(t)
	must.Get(b.m.Listen(77, netip.Addr{}, 9))(t)
	got := map[cm.EventKind]cm.Event{}
	w.told = func(_ *host, e cm.Event) { got[e.Kind] = e }
	data := func(n int) []byte { return bytes.Repeat([]byte{0xab}, n) }
	tooLong := func(err error) { require.ErrorIs(t, err, syscall.EINVAL) }
	step := func(err error) {
		require.NoError(t, err)
		a.settle()
		b.settle()
		w.advance(hop)
	}

	p := a.params(b, 1, string(data(57)))
	_, err := a.m.Connect(w.now, p)
	tooLong(err)
	p.Private = data(56)
	id, err := a.m.Connect(w.now, p)
	step(err)
	require.Equal(t, data(56), got[cm.ConnectRequest].Private)
	passive := got[cm.ConnectRequest].Conn
	tooLong(b.m.Accept(w.now, passive, &cm.AcceptParams{QPN: 9, Private: data(197)}))
	tooLong(b.m.Reject(w.now, passive, 28, data(149)))
	step(b.m.Accept(w.now, passive, &cm.AcceptParams{QPN: 9, Private: data(196)}))
	require.Equal(t, data(196), got[cm.ConnectResponse].Private)
	step(a.m.Confirm(id))

	// A service that is not of IP has the room of the addresses too.
	p = a.params(b, 1, string(data(93)))
	p.Service = 77
	_, err = a.m.Connect(w.now, p)
	tooLong(err)
	p.Private = data(92)
	_, err = a.m.Connect(w.now, p)
	step(err)
	e := got[cm.ConnectRequest]
	require.Equal(t, []any{data(92), netip.AddrPort{}, netip.Addr{}}, []any{e.Private, e.Src, e.Dst})
	step(b.m.Reject(w.now, e.Conn, 28, data(148)))
	require.Equal(t, data(148), got[cm.Rejected].Private)
}

func TestBadCalls(t *testing.T) {
	w, a, b, _ := pair(t, cm.Config{})
	good := a.params(b, 1, "")
	for name, spoil := range map[string]func(p *cm.ConnectParams){
		"no peer":       func(p *cm.ConnectParams) { p.Peer = netip.AddrPort{} },
		"no port":       func(p *cm.ConnectParams) { p.Peer = netip.AddrPortFrom(p.Peer.Addr(), 0) },
		"no own":        func(p *cm.ConnectParams) { p.Src = netip.AddrPort{} },
		"mixed":         func(p *cm.ConnectParams) { p.Src = netip.MustParseAddrPort("[::1]:1") },
		"nowhere":       func(p *cm.ConnectParams) { p.Dst = netip.Addr{} },
		"MTU 0":         func(p *cm.ConnectParams) { p.MTU = 0 },
		"MTU 6":         func(p *cm.ConnectParams) { p.MTU = 6 },
		"retries":       func(p *cm.ConnectParams) { p.RetryCount = 8 },
		"RNR retries":   func(p *cm.ConnectParams) { p.RNRRetryCount = 8 },
		"queue pair":    func(p *cm.ConnectParams) { p.QPN = 1 << 24 },
		"private bytes": func(p *cm.ConnectParams) { p.Private = make([]byte, 57) },
	} {
		p := *good
		spoil(&p)
		must.Fail(a.m.Connect(w.now, &p))(t, syscall.EINVAL, name)
	}
	for _, err := range []error{a.m.Accept(1, 5, &cm.AcceptParams{}), a.m.Confirm(5), a.m.Reject(1, 5, 28, nil),
		a.m.Disconnect(1, 5), a.m.Destroy(1, 5), a.m.Take(5), a.m.Unlisten(1, 5)} {
		require.ErrorIs(t, err, syscall.ENOENT)
	}
	must.Fail(a.m.Attr(5))(t, syscall.ENOENT)
	id := a.connect(t, b)
	must.Fail(a.m.Attr(id))(t, syscall.EINVAL)
	must.Fail(a.m.Listen(77, netip.MustParseAddr("10.0.0.1"), 1))(t, syscall.EINVAL)
	all, _ := a.m.Len()
	require.Equal(t, 1, all)
}

// Datagrams for a connection from an address that is not the peer's do nothing.
func TestForged(t *testing.T) {
	w, a, b, passive := pair(t, cm.Config{})
	id := a.connect(t, b)
	w.advance(3 * hop)
	require.Equal(t, cm.Established, a.m.State(id))
	require.NoError(t, b.m.Disconnect(w.now, (*passive)[0]))
	d, _ := b.m.Transmit()
	forger := netip.MustParseAddrPort("10.0.0.77:4791")
	a.m.Receive(w.now, forger, d.MAD[:])
	require.Equal(t, cm.Established, a.m.State(id))
	require.EqualValues(t, 1, a.m.Counters().DropPeer)
	_, answered := a.m.Transmit()
	require.False(t, answered)

	// A DREQ that names another queue pair neither.
	d.MAD[wire.MADHeaderLen+10]++
	a.m.Receive(w.now, b.addr, d.MAD[:])
	require.Equal(t, cm.Established, a.m.State(id))
	require.EqualValues(t, 1, a.m.Counters().DropQPN)
	d.MAD[wire.MADHeaderLen+10]--
	a.m.Receive(w.now, b.addr, d.MAD[:])
	require.Equal(t, cm.TimeWait, a.m.State(id))

	// A REQ that names another address than its own is refused.
	b.m.Receive(w.now, forger, wiretest.Request(a.addr.Addr(), b.addr.Addr(), 1, 2))
	// And one whose sender says that its program has another.
	mad := wiretest.Request(forger.Addr(), b.addr.Addr(), 1, 1)
	lie := wire.NewIPCM(netip.AddrPortFrom(a.addr.Addr(), 5000), b.addr.Addr())
	lie.Append(mad[:len(mad)-wire.REQPrivateLen])
	b.m.Receive(w.now, forger, mad)
	out, events := drain(b)
	require.Len(t, out, 2)
	for _, o := range out {
		require.Equal(t, forger, o.To)
	}
	require.Empty(t, events)
}

// Datagrams that are not for a manager are dropped and counted.
func TestStrangeDatagrams(t *testing.T) {
	w := newWorld(t)
	h := w.host("a", cm.Config{})
	from := netip.MustParseAddrPort("10.0.0.77:4791")
	request := func() []byte { return wiretest.Request(from.Addr(), h.addr.Addr(), 1, 1) }
	for _, a := range []wire.CMAttribute{wire.AttrLAP, wire.AttrAPR} {
		b := request()
		binary.BigEndian.PutUint16(b[16:], uint16(a))
		h.m.Receive(w.now, from, b)
	}
	h.m.Receive(w.now, from, request()[:255])
	h.m.Receive(w.now, from, append(request(), 0))
	for at := range 4 { // versions, class, method
		b := request()
		b[at]++
		h.m.Receive(w.now, from, b)
	}
	c := h.m.Counters()
	require.EqualValues(t, []uint64{8, 2, 2, 4}, []uint64{c.Received, c.DropAttribute, c.DropLength, c.DropClass})
	_, ok := h.m.Transmit()
	require.False(t, ok)
}

// A listener is there for its address or for all; without it, requests that
// were reported stay.
func TestListeners(t *testing.T) {
	w, a, b := twoHosts(t)
	one := must.Get(b.m.Listen(wire.TCPService(1), b.addr.Addr(), 5))(t)
	other := must.Get(b.m.Listen(wire.TCPService(1), netip.MustParseAddr("10.0.0.99"), 5))(t)
	var got []cm.Event
	w.told = func(_ *host, e cm.Event) { got = append(got, e) }
	for _, dst := range []string{"10.0.0.2", "10.0.0.99", "::ffff:10.0.0.2", "10.0.0.3"} {
		p := a.params(b, 1, "")
		p.Dst = netip.MustParseAddr(dst)
		must.Get(a.m.Connect(w.now, p))(t)
	}
	a.settle()
	w.advance(3 * hop)
	require.Len(t, got, 4)
	require.Equal(t, []any{one, other, one}, []any{got[0].Listener, got[1].Listener, got[2].Listener})
	require.Equal(t, cm.Rejected, got[3].Kind)
	require.NoError(t, b.m.Unlisten(w.now, one))
	require.ErrorIs(t, b.m.Unlisten(w.now, one), syscall.ENOENT)
	require.NoError(t, b.m.Accept(w.now, got[0].Conn, b.acceptParams("")))
	must.Fail(b.m.Listen(wire.TCPService(1), netip.IPv4Unspecified(), 5))(t, syscall.EADDRINUSE)
	_, err := b.m.Listen(wire.TCPService(1), netip.IPv6Unspecified(), 5)
	require.NoError(t, err) // no address of it is IPv4
	require.NoError(t, b.m.Unlisten(w.now, other))
	four := must.Get(b.m.Listen(wire.TCPService(1), netip.IPv4Unspecified(), 5))(t)
	for _, addr := range []netip.Addr{{}, b.addr.Addr(), netip.IPv4Unspecified(), netip.MustParseAddr("fd00::2")} {
		must.Fail(b.m.Listen(wire.TCPService(1), addr, 5))(t, syscall.EADDRINUSE, addr)
	}
	got = nil
	must.Get(a.m.Connect(w.now, a.params(b, 1, "")))(t)
	a.settle()
	w.advance(3 * hop)
	require.Equal(t, four, got[0].Listener)
}

// A request that comes while its service has no listener for a moment is held:
// it finds the next listener at once, or is refused after 200 ms, once. A
// question for datagrams is, where connections were listened for, too.
func TestVacancy(t *testing.T) {
	for _, c := range []struct{ datagrams, again bool }{{false, true}, {false, false}, {true, true}, {true, false}} {
		w := newWorld(t)
		a, b := w.host("a", cm.Config{}), w.host("b", cm.Config{Vacancy: 2 * cm.Second})
		l, err := b.m.Listen(wire.TCPService(1), netip.Addr{}, 5)
		require.NoError(t, err)
		require.NoError(t, b.m.Unlisten(w.now, l))
		var got []cm.Event
		w.told = func(_ *host, e cm.Event) { got = append(got, e) }
		w.advance(cm.Second)
		service, request, refusal := wire.TCPService(1), cm.ConnectRequest, cm.Rejected
		if c.datagrams {
			service, request, refusal = wire.UDPService(1), cm.SIDRRequest, cm.SIDRReply
			_, err = a.m.Resolve(w.now, a.question(b, 1, ""))
		} else {
			_, err = a.m.Connect(w.now, a.params(b, 1, ""))
		}
		require.NoError(t, err)
		a.settle()
		w.advance(100 * cm.Millisecond)
		require.Empty(t, got)
		require.EqualValues(t, 1, b.m.Counters().Held)
		if c.again {
			must.Get(b.m.Listen(service, netip.Addr{}, 5))(t)
			w.advance(10 * cm.Millisecond)
		} else {
			w.advance(120 * cm.Millisecond) // the request was not repeated yet
		}
		require.Len(t, got, 1)
		require.Equal(t, map[bool]cm.EventKind{true: request, false: refusal}[c.again], got[0].Kind)
	}
}

// A host that slept past the time does not give its peer up unasked.
func TestSleeper(t *testing.T) {
	w, a, b, _ := pair(t, cm.Config{})
	id := must.Get(a.m.Connect(w.now, a.params(b, 1, "")))(t)
	drain(a) // lost
	w.now += cm.Time(3600 * cm.Second)
	a.m.HandleTimeout(w.now)
	a.settle()
	w.advance(3 * hop)
	require.Equal(t, cm.Established, a.m.State(id))
}

// Names and counters are complete.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for s := cm.Idle; s <= cm.SidrReqRcvd; s++ {
		require.False(t, seen[s.String()])
		seen[s.String()] = true
	}
	require.Equal(t, "UNKNOWN", (cm.SidrReqRcvd + 1).String())
	for k := cm.ConnectRequest; k <= cm.SIDRReply; k++ {
		require.False(t, seen[k.String()] && k != cm.Connected)
		seen[k.String()] = true
	}
	require.Equal(t, "UNKNOWN", cm.EventKind(0).String())
	require.Equal(t, "UNKNOWN", (cm.SIDRReply + 1).String())
	new(cm.Counters).Each(func(name string, _ uint64) {
		require.True(t, strings.HasPrefix(name, "cm_") && !seen[name], name)
		seen[name] = true
	})
	require.Equal(t, cm.Duration(103_079_215_104), cm.Config{}.Silence(), "16 times 4.295 s and twice 1.074 s")
}
