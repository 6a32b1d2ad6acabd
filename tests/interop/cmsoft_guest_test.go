//go:build guest && linux

package interop

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/rnic"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/udp"
	"github.com/rdmashim/rdmashim/tests/must"
)

// softKernel is an emulated kernel with a soft RNIC at an address of the soft
// side, and what goes wrong with the packets that it sends.
func softKernel(t *testing.T, addr netip.Addr, f link.Faults) kshim.Kernel {
	var l link.Link
	require.NoError(t, lab.space.Do(func() (err error) {
		l, err = udp.Listen(netip.AddrPortFrom(addr, 4791), udp.Options{})
		return err
	}))
	if f.Any() {
		l = link.WithFaults(l, f)
	}
	dev := must.Get(rnic.New(rnic.Config{Name: "soft0", Link: l}))(t)
	m := emu.New()
	require.NoError(t, m.Register(dev))
	p := m.Process("interop")
	t.Cleanup(func() {
		p.Exit()
		require.NoError(t, dev.Close())
	})
	return p
}

// cmProgram is a program with a queue pair on either kernel.
func cmProgram(t *testing.T, k kshim.Kernel, device string) *cmEnd {
	e := &cmEnd{page: make([]byte, 4096)}
	e.ch = must.Get(rdmacm.Open(k))(t)
	t.Cleanup(func() { require.NoError(t, e.ch.Close()) })
	e.dev = must.Get(verbs.Open(k, device))(t)
	t.Cleanup(func() { require.NoError(t, e.dev.Close()) })
	e.pd = must.Get(e.dev.AllocPD())(t)
	e.mr = must.Get(e.pd.RegMR(e.page, abi.AccessLocalWrite|abi.AccessRemoteWrite|abi.AccessRemoteRead))(t)
	e.cq = must.Get(e.dev.CreateCQ(64))(t)
	e.qp = must.Get(e.pd.CreateQP(verbs.QPInit{SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 32, MaxRecvWR: 32, MaxSendSGE: 1, MaxRecvSGE: 1}))(t)
	return e
}

// cmPrograms are one on the soft RNIC, at an address of its side, and one on
// rxe.
func cmPrograms(t *testing.T, f family, n int) (soft, rxe *cmEnd) {
	return cmProgram(t, softKernel(t, f.softAddr(n), link.Faults{}), "soft0"), cmProgram(t, must.Get(host.New(host.Options{}))(t), "rxe0")
}

// place is where the peer may write, as private data.
func (e *cmEnd) place() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, e.mr.Addr()), e.mr.RKey())
}

// TestSoftCM: the soft RNIC's communication manager and Linux's connect, refuse
// and disconnect, either of them as the active side, over both families.
func TestSoftCM(t *testing.T) {
	for _, f := range families {
		for _, active := range []string{"soft", "rxe"} {
			t.Run(f.name+"/"+active, func(t *testing.T) {
				soft, rxe := cmPrograms(t, f, 6)
				if active == "soft" {
					connectPrograms(t, soft, rxe, netip.AddrPortFrom(f.rxe, 7481))
				} else {
					connectPrograms(t, rxe, soft, netip.AddrPortFrom(f.softAddr(6), 7481))
				}
			})
		}
	}
}

func connectPrograms(t *testing.T, a, b *cmEnd, server netip.AddrPort) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	l := must.Get(b.ch.Listen(server, 8, rdmacm.Options{}))(t)
	defer l.Close()
	resolve := func(port uint16) *rdmacm.ID {
		return must.Get(a.ch.Resolve(ctx, netip.AddrPort{}, netip.AddrPortFrom(server.Addr(), port), rdmacm.Options{}))(t)
	}

	// No program listens.
	id := resolve(9)
	_, err := id.Connect(ctx, a.qp, cmParam)
	var refused *rdmacm.RejectedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, abi.UCMRejInvalidServiceID, refused.Reason)
	require.NoError(t, id.Destroy())

	// The program there refuses, with a reason; and then it accepts.
	type answer struct {
		r   *rdmacm.Request
		err error
	}
	served, place := make(chan answer, 1), a.place()
	go func() {
		r, err := l.Accept(ctx)
		// The request that is to be refused, and a repeat of it that arrives
		// behind the answer: the soft RNIC repeats early, and Linux does not
		// remember its refusals.
		for err == nil && !bytes.HasPrefix(r.Peer.Private[:], place) {
			if err = r.Reject(abi.UCMRejConsumerDefined, []byte("not you")); err == nil {
				r, err = l.Accept(ctx)
			}
		}
		if err == nil {
			p := cmParam
			p.Private = b.place()
			err = r.Accept(ctx, b.qp, p)
		}
		served <- answer{r, err}
	}()
	id = resolve(server.Port())
	require.NoError(t, a.qp.Modify(&verbs.QPAttr{State: abi.QPSReset}, abi.QPMaskState))
	_, err = id.Connect(ctx, a.qp, cmParam)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, abi.UCMRejConsumerDefined, refused.Reason)
	require.Equal(t, "not you", string(refused.Private[:7]))
	require.NoError(t, id.Destroy())

	id = resolve(server.Port())
	require.NoError(t, a.qp.Modify(&verbs.QPAttr{State: abi.QPSReset}, abi.QPMaskState))
	p := cmParam
	p.Private = a.place()
	peer := must.Get(id.Connect(ctx, a.qp, p))(t)
	s := <-served
	require.NoError(t, s.err)
	copy(a.page, "from the active side")
	a.post(t, abi.WRRDMAWrite, 20, 0, peer.Private)
	require.Equal(t, "from the active side", string(b.page[:20]))
	copy(b.page[:], "from the passive one")
	b.post(t, abi.WRRDMAWrite, 20, 0, s.r.Peer.Private)
	require.Equal(t, "from the passive one", string(a.page[:20]))
	count(2, 40)

	require.NoError(t, id.Disconnect())
	for _, end := range []*rdmacm.ID{id, s.r.ID} {
		select {
		case <-end.Context().Done():
		case <-ctx.Done():
			require.FailNow(t, "nobody tells of the end")
		}
	}
	require.NoError(t, a.qp.Destroy())
	require.NoError(t, b.qp.Destroy())
	require.NoError(t, id.Destroy())
	require.NoError(t, s.r.Destroy())
}
