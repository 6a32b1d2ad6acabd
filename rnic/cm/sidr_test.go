package cm_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// asked is one question and its outcome.
type asked struct {
	id      wire.CommID
	port    uint16
	seen    int // by the serving program
	answer  *cm.AnswerParams
	outcome *cm.Event
}

// TestRandomQuestions asks over a network that loses, doubles and delays. Each
// question comes to the serving program once, its answer to the asking one, and
// nothing is left.
func TestRandomQuestions(t *testing.T) {
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 200
	}
	var unreachable, doubled, lost int
	for seed := uint64(1); seed <= seeds; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		w.seed = seed
		cfg := cm.Config{ResponseTimeout: 16, Retries: 7}
		a, b := w.host("a", cfg), w.host("b", cfg)
		loss, dup := []float64{0, 0.05, 0.2, 0.4}[rnd.IntN(4)], []float64{0, 0.3}[rnd.IntN(2)]
		w.fate = func(*flight) (list []cm.Duration) {
			if rnd.Float64() < loss {
				lost++
				return nil
			}
			list = append(list, hop+cm.Duration(rnd.Int64N(int64(100*cm.Millisecond))))
			if rnd.Float64() < dup {
				doubled++
				list = append(list, hop+cm.Duration(rnd.Int64N(int64(500*cm.Millisecond))))
			}
			return list
		}
		for port := range uint16(2) {
			must.Get(b.m.Listen(wire.UDPService(port), netip.Addr{}, 100))(t)
		}
		var questions []*asked
		w.told = func(h *host, e cm.Event) {
			if h == b {
				var n int
				_, err := fmt.Sscanf(string(e.Private), "question %d.", &n)
				require.NoError(t, err, "seed %d", seed)
				q := questions[n]
				q.seen++
				require.Equal(t, []any{cm.SIDRRequest, wire.UDPService(q.port), a.addr.Addr(), b.addr.Addr(), cm.SIDRUserLen},
					[]any{e.Kind, e.Service, e.Src.Addr(), e.Dst, len(e.Private)}, "seed %d", seed)
				q.answer = &cm.AnswerParams{Status: wire.SIDRStatus(2 * rnd.IntN(2)), QPN: wire.QPN(100 + n), QKey: uint32(n), Private: fmt.Appendf(nil, "answer %d.", n)}
				w.later(cm.Duration(rnd.Int64N(int64(200*cm.Millisecond))), func() {
					require.NoError(t, b.m.Answer(w.now, e.Conn, q.answer), "seed %d", seed)
					b.settle()
					w.later(cm.Duration(rnd.Int64N(int64(cm.Second))), func() { require.NoError(t, b.m.Destroy(w.now, e.Conn)) })
				})
				return
			}
			for _, q := range questions {
				if q.id == e.Conn {
					require.Nil(t, q.outcome, "seed %d: told twice", seed)
					q.outcome = &e
				}
			}
		}
		for n := range 1 + rnd.IntN(6) {
			q := &asked{port: uint16(rnd.IntN(3))}
			questions = append(questions, q)
			w.later(cm.Duration(rnd.Int64N(int64(2*cm.Second))), func() {
				var err error
				q.id, err = a.m.Resolve(w.now, a.question(b, q.port, fmt.Sprintf("question %d.", n)))
				require.NoError(t, err)
				a.settle()
			})
		}
		w.run(forever)
		for n, q := range questions {
			require.NotNil(t, q.outcome, "seed %d: nothing came of question %d", seed, n)
			require.LessOrEqual(t, q.seen, 1, "seed %d: question %d came more than once", seed, n)
			e := q.outcome
			switch {
			case e.Kind == cm.Unreachable:
				unreachable++
				require.NotZero(t, loss, "seed %d: given up without a loss", seed)
			case q.port == 2:
				require.Equal(t, wire.SIDRUnsupportedService, e.Status, "seed %d", seed)
			default:
				require.Equal(t, q.answer.Status, e.Status, "seed %d", seed)
				require.Equal(t, string(q.answer.Private), strings.TrimRight(string(e.Private), "\x00"), "seed %d", seed)
				if e.Status == wire.SIDRValid {
					require.Equal(t, []any{q.answer.QPN, q.answer.QKey}, []any{e.Attr.RemoteQPN, e.QKey}, "seed %d", seed)
				}
			}
			require.NoError(t, a.m.Destroy(w.now, q.id))
		}
		for _, h := range w.hosts {
			all, _ := h.m.Len()
			_, waits := h.m.NextTimeout()
			require.Equal(t, []any{0, false}, []any{all, waits}, "seed %d: %s", seed, h.name)
		}
	}
	t.Logf("%d unreachable, %d datagrams lost, %d doubled", unreachable, lost, doubled)
	require.NotZero(t, unreachable)
}

// ask is a SIDR_REQ of a stranger.
func ask(from, to netip.Addr, port uint16, n int) []byte {
	r := wire.SIDRREQ{RequestID: wire.CommID(n), PKey: 0xffff, ServiceID: wire.UDPService(port)}
	ip := wire.NewIPCM(netip.AddrPortFrom(from, 5000), to)
	ip.Append(r.Private[:0])
	h := wire.CMHeader(uint64(n), wire.AttrSIDRREQ)
	return r.Append(h.Append(nil))
}

// Questions of strangers are bounded as their REQs are, by the same listener,
// answered ones as connections in TIMEWAIT, and each datagram brings one at
// most.
func TestQuestionsAreBounded(t *testing.T) {
	w := newWorld(t)
	b := w.host("b", cm.Config{MaxRequests: 40, MaxLinger: 50})
	must.Get(b.m.Listen(wire.UDPService(1), netip.Addr{}, 1000))(t)
	next := 0
	// The program answers all of a flood.
	for range 10_000 {
		next++
		b.m.Receive(w.now, liar(next), ask(liar(next).Addr(), b.addr.Addr(), 1, next))
		sent, events := drain(b)
		require.Empty(t, sent)
		for _, e := range events {
			require.NoError(t, b.m.Answer(w.now, e.Conn, &cm.AnswerParams{}))
			require.NoError(t, b.m.Destroy(w.now, e.Conn))
			sent, _ = drain(b)
			require.Len(t, sent, 1)
		}
		all, lingering := b.m.Len()
		require.LessOrEqual(t, lingering, 50)
		require.LessOrEqual(t, all, 50+40)
	}
}

// A stranger's question that makes no sense is refused with one datagram, and
// leaves nothing.
func TestQuestionsThatMakeNoSense(t *testing.T) {
	from, to := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.1")
	for _, c := range []struct {
		what   string
		change func(b []byte)
		want   wire.SIDRStatus
	}{
		{"another service", func(b []byte) { b[wire.MADHeaderLen+13] = 6 }, wire.SIDRUnsupportedService},
		{"of no port space", func(b []byte) { b[wire.MADHeaderLen+8] = 1 }, wire.SIDRUnsupportedService},
		{"another version", func(b []byte) { b[wire.MADHeaderLen+16] = 0x10 }, wire.SIDRRejected},
		{"no IP version", func(b []byte) { b[wire.MADHeaderLen+17] = 0x50 }, wire.SIDRRejected},
		{"the address of another host", func(b []byte) { b[wire.MADHeaderLen+16+19]++ }, wire.SIDRRejected},
	} {
		w := newWorld(t)
		h := w.host("a", cm.Config{})
		for _, s := range []wire.ServiceID{wire.UDPService(1), wire.TCPService(1)} {
			must.Get(h.m.Listen(s, netip.Addr{}, 1))(t)
		}
		b := ask(from, to, 1, 7)
		c.change(b)
		h.m.Receive(w.now, netip.AddrPortFrom(from, 60000), b)
		sent, events := drain(h)
		require.Empty(t, events, c.what)
		require.Len(t, sent, 1, c.what)
		require.Equal(t, netip.AddrPortFrom(from, wire.Port), sent[0].To, c.what)
		var r wire.SIDRREP
		require.NoError(t, r.Parse(sent[0].MAD[wire.MADHeaderLen:]))
		require.Equal(t, []any{c.want, wire.CommID(7), wire.QPN(0), uint32(0)}, []any{r.Status, r.RequestID, r.QPN, r.QKey}, c.what)
		all, _ := h.m.Len()
		require.Zero(t, all, c.what)
	}
}

func TestQuestionErrors(t *testing.T) {
	w := newWorld(t)
	a, b := w.host("a", cm.Config{MaxConns: 1}), w.host("b", cm.Config{})
	for what, change := range map[string]func(*cm.ResolveParams){
		"no peer":               func(p *cm.ResolveParams) { p.Peer = netip.AddrPort{} },
		"no source":             func(p *cm.ResolveParams) { p.Src = netip.AddrPort{} },
		"another IP version":    func(p *cm.ResolveParams) { p.Src = netip.MustParseAddrPort("[::1]:1") },
		"no destination":        func(p *cm.ResolveParams) { p.Dst = netip.Addr{} },
		"a service of TCP":      func(p *cm.ResolveParams) { p.Service = wire.TCPService(1) },
		"too long private data": func(p *cm.ResolveParams) { p.Private = make([]byte, cm.SIDRUserLen+1) },
	} {
		p := a.question(b, 1, "")
		change(p)
		must.Fail(a.m.Resolve(w.now, p))(t, syscall.EINVAL, what)
	}
	p := a.question(b, 1, "")
	p.Private = make([]byte, cm.SIDRUserLen)
	id := must.Get(a.m.Resolve(w.now, p))(t)
	must.Fail(a.m.Resolve(w.now, p))(t, syscall.ENOMEM)
	must.Fail(a.m.Attr(id))(t, syscall.EINVAL)

	must.Get(b.m.Listen(wire.UDPService(1), netip.Addr{}, 1))(t)
	var asked wire.CommID
	w.told = func(_ *host, e cm.Event) { asked = e.Conn }
	a.settle()
	w.advance(hop)
	for what, p := range map[string]*cm.AnswerParams{
		"too long private data": {Private: make([]byte, wire.SIDRREPPrivateLen+1)},
		"queue pair number":     {QPN: 1 << 24},
	} {
		require.ErrorIs(t, b.m.Answer(w.now, asked, p), syscall.EINVAL, what)
	}
	require.ErrorIs(t, b.m.Answer(w.now, asked+1, &cm.AnswerParams{}), syscall.ENOENT)
	require.NoError(t, b.m.Answer(w.now, asked, &cm.AnswerParams{Private: make([]byte, wire.SIDRREPPrivateLen)}))
}
