package msgring_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/msgring/core"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// raw is a peer that posts anything.
type raw struct {
	*uapi.Device
	t    *testing.T
	qp   uapi.QP
	mr   uapi.MR
	mem  []byte
	peer core.Hello
}

// goodHello is what an honest peer with a ring at that address would say.
func goodHello(addr uint64, rkey uint32) core.Hello {
	return core.Hello{
		Mode: core.Bytes, Quantum: 256, Addr: addr, RKey: rkey, Ring: core.MinRing,
		Controls: core.Controls, Longest: core.MinRing / 4,
	}
}

// newRaw gives the peer memory for a ring and for what it sends.
func newRaw(t *testing.T, device *uapi.Device) *raw {
	r := &raw{Device: device, t: t, mem: make([]byte, 64<<10)}
	r.mr = must.Get(device.RegMR(r.mem, uapitest.AllAccess))(t)
	t.Cleanup(func() {
		if r.qp > 0 {
			require.NoError(t, device.DestroyQP(r.qp))
		}
		require.NoError(t, device.DeregMR(r.mr))
	})
	return r
}

// dial connects with that private data.
func (r *raw) dial(ctx context.Context, addr string, private []byte) error {
	qp, err := r.Dial(ctx, addr, uapi.DialConfig{Private: private, Prepare: func(qp uapi.QP) error {
		for range 32 {
			if _, err := r.PostRecv(qp, r.mr, 32<<10, 64); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	r.qp = qp
	return r.peer.Parse(must.Get(r.QueryConn(qp))(r.t).PrivateData, true)
}

// send posts a SEND of that message.
func (r *raw) send(b []byte) {
	copy(r.mem[48<<10:], b)
	_, err := r.Post(r.qp, []uapi.WR{{Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: r.mr, Offset: 48 << 10, Length: uint64(len(b))}}}})
	require.NoError(r.t, err)
}

// write posts a WRITE of n bytes with an immediate to an offset in the ring.
func (r *raw) write(offset, n uint64, imm uint32) {
	_, err := r.WriteImm(r.qp, uapi.SGE{MR: r.mr, Length: n}, uapi.Region{Addr: r.peer.Addr + offset, Length: max(n, 1), RKey: r.peer.RKey}, imm)
	require.NoError(r.t, err)
}

func message(t core.ControlType, consumed, argument uint64) []byte {
	m := core.Control{Type: t, Consumed: consumed, Argument: argument}
	return m.Append(nil)
}

// TestRival16HostilePeer: a peer that breaks the protocol is cut off with an
// error that says what it did, and is told so where its queue pair still works.
func TestRival16HostilePeer(t *testing.T) {
	type hostile struct {
		name  string
		do    func(r *raw)
		is    error
		text  string
		reset bool // the peer's queue pair lives, and gets a RESET
	}
	cases := []hostile{
		{"immediate with high bits", func(r *raw) { r.write(0, 1, 1<<31) }, syscall.EPROTO, "two high bits", true},
		{"credit for nothing", func(r *raw) { r.write(0, 1, 1) }, syscall.EPROTO, "0 are outstanding", true},
		{"credit that goes back", func(r *raw) { r.write(0, 1, 1<<30-1) }, syscall.EPROTO, "0 are outstanding", true},
		{"CREDIT beyond what is outstanding", func(r *raw) { r.send(message(core.CREDIT, 256, 0)) }, syscall.EPROTO, "0 are outstanding", true},
		{"empty chunk", func(r *raw) { r.write(0, 0, 0) }, syscall.EPROTO, "a chunk of 0 bytes", true},
		{"long chunk", func(r *raw) { r.write(0, 4097, 0) }, syscall.EPROTO, "a chunk of 4097 bytes", true},
		{"more than the ring", func(r *raw) {
			for range 5 {
				r.write(0, 4096, 0)
			}
		}, syscall.EPROTO, "without credit", true},
		{"FIN of another length", func(r *raw) { r.send(message(core.FIN, 0, 1)) }, syscall.EPROTO, "a FIN after 1 bytes", true},
		{"write beyond the ring", func(r *raw) { r.write(core.MinRing-1, 2, 0) }, nil, "", false},
		{"write with another key", func(r *raw) {
			r.peer.RKey++
			r.write(0, 1, 0)
		}, nil, "", false},
	}
	for n := range 66 {
		if n != core.ControlLen {
			h := hostile{name: fmt.Sprintf("control of %d bytes", n), is: syscall.EPROTO, text: "a control message of", reset: true}
			if n > 64 {
				h.is, h.text, h.reset = nil, "", false // the device refuses it
			}
			h.do = func(r *raw) { r.send(append(message(core.CREDIT, 0, 0), make([]byte, 64)...)[:n]) }
			cases = append(cases, h)
		}
	}
	for _, h := range cases {
		t.Run(h.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, l := uapitest.Listen(t, "")
				r, c := hostilePair(t, x, l, core.MinRing)
				h.do(r)
				synctest.Wait() // all of it has arrived before the first read
				require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
				_, err := c.Read(make([]byte, 64<<10))
				for err == nil {
					_, err = c.Read(make([]byte, 64<<10))
				}
				require.ErrorContains(t, err, h.text)
				if h.is != nil {
					require.ErrorIs(t, err, h.is)
				}
				if h.reset {
					require.Contains(t, r.controls(), core.Control{Type: core.RESET, Argument: uint64(core.ProtocolViolated)})
				}
				_, err = c.Write(make([]byte, 1))
				require.Error(t, err)
			})
		})
	}
}

// TestKeyOfFormerOwner: the memory of a connection that ended is the next
// one's, empty, and its key does not open it: the peer that has both ends its
// own connection. So it is when another connection keeps what ended ones leave,
// the protection domain among it.
func TestKeyOfFormerOwner(t *testing.T) {
	for name, kept := range map[string]bool{"alone": false, "beside another": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, l := uapitest.Listen(t, "")
				const ring = 64 << 10 // of memory that is used again
				if kept {
					hostilePair(t, x, l, ring)
				}
				former, c := hostilePair(t, x, l, ring)
				former.write(0, 4096, 0)
				lent := must.Get(c.Reserve(100))(t)
				copy(lent[50:], "secret")
				require.NoError(t, c.Commit(10))
				synctest.Wait()
				require.NoError(t, c.Abort())
				givenBack(t, c)
				next, c := hostilePair(t, x, l, ring)
				require.Equal(t, former.peer.Addr, next.peer.Addr)
				require.NotEqual(t, former.peer.RKey, next.peer.RKey)
				require.NotEqual(t, former.qp, next.qp)
				again := must.Get(c.Reserve(100))(t)
				require.Equal(t, make([]byte, 100), again)
				if kept {
					require.Same(t, &lent[0], &again[0])
				}
				require.NoError(t, c.Commit(0))
				next.peer.RKey = former.peer.RKey
				next.write(0, 1, 0)
				var wc [1]uapi.WC
				must.Get(next.WaitCQ(t.Context(), next.qp, wc[:]))(t)
				require.Equal(t, uapi.WCRemAccessErr, wc[0].Status)
				_, err := c.Read(make([]byte, 1))
				require.Error(t, err)
			})
		})
	}
}

// controls returns the control messages that come, until none comes for a
// second.
func (r *raw) controls() (list []core.Control) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		var wc [1]uapi.WC
		_, err := r.WaitCQ(ctx, r.qp, wc[:])
		cancel()
		if err != nil {
			return list
		}
		if wc[0].Status == uapi.WCSuccess && wc[0].Opcode == uapi.WCOpRecv {
			var m core.Control
			require.NoError(r.t, m.Parse(r.mem[32<<10:32<<10+wc[0].ByteLen]))
			m.Consumed = 0
			list = append(list, m)
		}
	}
}

// hostilePair connects a raw peer on x to an acceptor with a ring of that size.
func hostilePair(t *testing.T, x *uapi.Device, l *uapi.Listener, ring int) (*raw, *msgring.Conn) {
	var c *msgring.Conn
	accepted := make(chan error, 1)
	go func() {
		request, err := l.Accept(t.Context())
		if err == nil {
			c, err = msgring.Accept(t.Context(), request, msgring.Config{Ring: ring})
		}
		accepted <- err
	}()
	r := newRaw(t, x)
	info := must.Get(x.QueryMR(r.mr))(t)
	hello := goodHello(info.Addr, info.RKey)
	require.NoError(t, r.dial(t.Context(), l.Addr().String(), hello.Append(nil, false)))
	require.NoError(t, <-accepted)
	t.Cleanup(func() { require.NoError(t, c.CloseContext(context.Background())) })
	return r, c
}

// echoListener accepts one connection of the service "echo", at the returned
// address; x dials it.
func echoListener(t *testing.T) (x *uapi.Device, at string, accepted <-chan error) {
	x, l := uapitest.Listen(t, "")
	end := make(chan error, 1)
	go func() {
		request, err := l.Accept(t.Context())
		if err == nil {
			_, err = msgring.Accept(t.Context(), request, msgring.Config{Service: "echo"})
		}
		end <- err
	}()
	return x, l.Addr().String(), end
}

// TestRefusals: a hello that does not meet the acceptor's is refused on both
// sides, with the reason.
func TestRefusals(t *testing.T) {
	info := func(change func(h *core.Hello)) []byte {
		h := goodHello(0x1000, 7)
		change(&h)
		return h.Append(nil, false)
	}
	for _, c := range []struct {
		name    string
		private []byte
		reason  core.Reason
	}{
		{"no hello", []byte("GET / HTTP/1.1"), core.ReasonMagic},
		{"nothing", nil, core.ReasonMagic},
		{"version", []byte("RDMS\x02"), core.ReasonVersion},
		{"mode", info(func(h *core.Hello) { h.Mode = core.RPC }), core.ReasonMode},
		{"service", info(func(h *core.Hello) { h.Service = 1 }), core.ReasonService},
		{"limits", info(func(h *core.Hello) { h.Ring = 4096 }), core.ReasonLimits},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, at, accepted := echoListener(t)
				err := newRaw(t, x).dial(t.Context(), at, c.private)
				var reject *uapi.RejectError
				require.ErrorAs(t, err, &reject)
				told, ok := core.ParseRefusal(reject.PrivateData)
				require.True(t, ok)
				require.Equal(t, c.reason, told.Reason)
				var refusal *core.Refusal
				require.ErrorAs(t, <-accepted, &refusal)
				require.Equal(t, told, refusal)
			})
		})
	}
}

// TestDialRefused: Dial gives the acceptor's refusal; a configuration that is
// none is EINVAL, and nothing is left.
func TestDialRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, at, accepted := echoListener(t)
		_, err := msgring.Dial(t.Context(), x, at, msgring.Config{Service: "other"})
		var refusal *core.Refusal
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, core.ReasonService, refusal.Reason)
		require.ErrorIs(t, err, uapi.ErrRefused)
		require.ErrorIs(t, <-accepted, syscall.ECONNREFUSED)
		_, err = msgring.Dial(t.Context(), x, at, msgring.Config{Ring: 1000})
		require.ErrorIs(t, err, syscall.EINVAL)
	})
}
