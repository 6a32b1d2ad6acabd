package cm_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// world is hosts on a network on virtual time.
type world struct {
	t     testing.TB
	now   cm.Time
	hosts []*host
	queue []*flight // by at and seq
	seq   int
	seed  uint64
	stray int // datagrams to addresses that no host has

	beside *host // the next hosts get its address; nil: one of their own

	// fate says when a datagram arrives, each time: none is a loss.
	fate func(f *flight) []cm.Duration
	// seen is shown every datagram that is sent.
	seen func(f *flight)
	// arrives is shown every datagram that a host gets, before it does.
	arrives func(f *flight)
	// probed is shown each host that asks a peer for a sign of life.
	probed func(h *host)
	// told gets every event of programs; owner is the host of the connection.
	told func(owner *host, e cm.Event)
}

type host struct {
	w     *world
	name  string
	addr  netip.AddrPort
	port  uint16 // that it sends from
	m     *cm.Manager
	lives byte
	cfg   cm.Config
	down  bool
	qpn   wire.QPN

	names map[wire.CommID]string
	ids   map[string]wire.CommID
	heard map[wire.CommID]uint64 // packets of connections' queue pairs
}

// flight is a datagram on its way.
type flight struct {
	at       cm.Time
	seq      int
	from, to *host
	mad      [wire.MADLen]byte
	do       func() // instead of a datagram: a planned action
}

const hop = cm.Millisecond

func newWorld(t testing.TB) *world {
	return &world{t: t, now: 1, fate: func(*flight) []cm.Duration { return []cm.Duration{hop} }, seen: func(*flight) {}, arrives: func(*flight) {}, told: func(*host, cm.Event) {}, probed: func(*host) {}}
}

// twoHosts is a world of two.
func twoHosts(t testing.TB) (w *world, a, b *host) {
	w = newWorld(t)
	return w, w.host("a", cm.Config{}), w.host("b", cm.Config{})
}

// host adds one; the n-th has the address 10.0.0.n.
func (w *world) host(name string, cfg cm.Config) *host {
	n := byte(len(w.hosts) + 1)
	h := &host{w: w, name: name, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), wire.Port), cfg: cfg, qpn: wire.QPN(n) << 16}
	if cfg.UDPPort != 0 {
		h.addr = netip.AddrPortFrom(h.addr.Addr(), cfg.UDPPort)
	}
	if w.beside != nil {
		h.addr = netip.AddrPortFrom(w.beside.addr.Addr(), h.addr.Port())
	}
	h.port = h.addr.Port()
	h.cfg.CAGUID = 0x0200000000000000 + uint64(n)
	w.hosts = append(w.hosts, h)
	h.start()
	return h
}

// start gives the host a manager that knows nothing.
func (h *host) start() {
	h.lives++
	h.cfg.Random = rand.NewPCG(h.w.seed, h.cfg.CAGUID<<8+uint64(h.lives))
	h.m = cm.New(h.cfg)
	h.names, h.ids = map[wire.CommID]string{}, map[string]wire.CommID{}
	h.heard = map[wire.CommID]uint64{}
}

func (w *world) at(addr netip.AddrPort) *host {
	for _, h := range w.hosts {
		if h.addr == addr {
			return h
		}
	}
	return nil
}

// settle takes out the host's datagrams and events, in the order in which a
// driver would.
func (h *host) settle() {
	for {
		if d, ok := h.m.Transmit(); ok {
			h.w.fly(h, d)
			continue
		}
		e, ok := h.m.Event()
		switch {
		case !ok:
			return
		case e.Kind == cm.Probe:
			h.probe(e)
		default:
			h.w.told(h, e)
		}
	}
}

// probe asks the peer's device whether its queue pair is connected to this one.
func (h *host) probe(e cm.Event) {
	if !h.m.AnswerProbe(h.w.now, e.Conn, h.heard[e.Conn]) {
		return
	}
	h.w.probed(h)
	h.w.later(hop, func() {
		peer := h.w.at(e.Attr.Peer)
		if peer == nil || peer.down {
			return
		}
		for _, id := range peer.m.Conns() {
			a, err := peer.m.Attr(id)
			if err == nil && a.Peer == h.addr && a.RemoteQPN == e.QPN && peer.m.State(id) == cm.Established {
				h.w.later(hop, func() { h.heard[e.Conn]++ })
			}
		}
	})
}

func (w *world) fly(from *host, d cm.Datagram) {
	to := w.at(d.To)
	if to == nil {
		w.stray++ // no host is there
		return
	}
	f := &flight{from: from, to: to, mad: d.MAD}
	w.seen(f)
	for _, after := range w.fate(f) {
		w.seq++
		one := *f
		one.at, one.seq = w.now+cm.Time(after), w.seq
		w.plan(&one)
	}
}

// later plans something.
func (w *world) later(after cm.Duration, do func()) {
	w.seq++
	w.plan(&flight{at: w.now + cm.Time(after), seq: w.seq, do: do})
}

func (w *world) plan(f *flight) {
	i, _ := slices.BinarySearchFunc(w.queue, f, func(a, b *flight) int { return cmp.Or(cmp.Compare(a.at, b.at), a.seq-b.seq) })
	w.queue = slices.Insert(w.queue, i, f)
}

// next is when something happens; 0 if nothing will.
func (w *world) next() cm.Time {
	var at cm.Time
	if len(w.queue) > 0 {
		at = w.queue[0].at
	}
	for _, h := range w.hosts {
		if t, ok := h.m.NextTimeout(); ok && !h.down && (at == 0 || t < at) {
			at = t
		}
	}
	return at
}

// forever is as far as time goes.
const forever cm.Time = 1 << 60

// run lets everything happen until a time; until forever, as long as there is
// anything to happen.
func (w *world) run(until cm.Time) {
	for steps := 0; ; steps++ {
		if steps > 5_000_000 {
			w.t.Fatalf("the world does not come to rest at %d", w.now)
		}
		at := w.next()
		if at == 0 || at > until {
			break
		}
		w.step(at)
	}
	if until != forever {
		w.now = max(w.now, until)
	}
}

func (w *world) step(at cm.Time) {
	w.now = max(w.now, at)
	for len(w.queue) > 0 && w.queue[0].at <= w.now {
		f := w.queue[0]
		w.queue = w.queue[1:]
		switch {
		case f.do != nil:
			f.do()
		case !f.to.down:
			w.arrives(f)
			f.to.m.Receive(w.now, netip.AddrPortFrom(f.from.addr.Addr(), f.from.port), f.mad[:])
			f.to.settle()
		}
	}
	for _, h := range w.hosts {
		if t, ok := h.m.NextTimeout(); ok && t <= w.now && !h.down {
			h.m.HandleTimeout(w.now)
			h.settle()
		}
	}
}

func (w *world) advance(d cm.Duration) { w.run(w.now + cm.Time(d)) }

// params is an ordinary request of h to a host's port.
func (h *host) params(to *host, port uint16, private string) *cm.ConnectParams {
	h.qpn++
	return &cm.ConnectParams{Peer: to.addr, Service: wire.TCPService(port), Src: netip.AddrPortFrom(h.addr.Addr(), 50000), Dst: to.addr.Addr(),
		QPN: h.qpn, MTU: 3, MaxDestRdAtomic: 4, MaxRdAtomic: 8, RetryCount: 6, RNRRetryCount: 5, Private: []byte(private)}
}

// question asks for the queue pair that serves a host's port of the port space
// UDP.
func (h *host) question(to *host, port uint16, private string) *cm.ResolveParams {
	return &cm.ResolveParams{Peer: to.addr, Service: wire.UDPService(port), Src: netip.AddrPortFrom(h.addr.Addr(), 50000), Dst: to.addr.Addr(),
		Private: []byte(private)}
}

func (h *host) acceptParams(private string) *cm.AcceptParams {
	h.qpn++
	return &cm.AcceptParams{QPN: h.qpn, MaxDestRdAtomic: 2, MaxRdAtomic: 3, RNRRetryCount: 1, Private: []byte(private)}
}

// attribute is the kind of a flight's message.
func (f *flight) attribute() wire.CMAttribute {
	var h wire.MAD
	if err := h.Parse(f.mad[:]); err != nil {
		panic(err)
	}
	return h.Attribute
}

var shortNames = map[wire.CMAttribute]string{wire.AttrREQ: "REQ", wire.AttrMRA: "MRA", wire.AttrREJ: "REJ", wire.AttrREP: "REP",
	wire.AttrRTU: "RTU", wire.AttrDREQ: "DREQ", wire.AttrDREP: "DREP",
	wire.AttrSIDRREQ: "SIDR_REQ", wire.AttrSIDRREP: "SIDR_REP"}

// String names the ends, the message and its subject.
func (f *flight) String() string {
	s := fmt.Sprintf("%s>%s %s", f.from.name, f.to.name, shortNames[f.attribute()])
	data := f.mad[wire.MADHeaderLen:]
	switch f.attribute() {
	case wire.AttrREJ:
		var r wire.REJ
		_ = r.Parse(data)
		s += fmt.Sprintf(" of %v: %v", r.About, r.Reason)
	case wire.AttrSIDRREP:
		var r wire.SIDRREP
		_ = r.Parse(data)
		s += fmt.Sprintf(" %d", r.Status)
	case wire.AttrMRA:
		var r wire.MRA
		_ = r.Parse(data)
		s += fmt.Sprintf(" of %v", r.About)
	}
	return s
}
